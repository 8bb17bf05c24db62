module example.com/go-search

go 1.21
