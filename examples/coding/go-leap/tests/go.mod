module example.com/go-leap

go 1.21
