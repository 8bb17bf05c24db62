module example.com/go-roman

go 1.21
