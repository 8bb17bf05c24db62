module example.com/go-cache

go 1.21
