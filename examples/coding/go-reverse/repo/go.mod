module example.com/go-reverse

go 1.21
