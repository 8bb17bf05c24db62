package browser

func command(func(string) string) (program string, args []string, err error) {
	return "rundll32", []string{"url.dll,FileProtocolHandler"}, nil
}
