package safeio

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
)

// ReadInput is Read for a file that the user names on a command line. It also reads streams and
// devices (see IsStream), such as /dev/stdin and <(...) of a shell, to their end. It returns when ctx
// ends, but the read of a stream continues in the background.
func ReadInput(ctx context.Context, path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode().IsRegular() || info.IsDir() || !IsStream(path) {
		return Read(path, limit)
	}
	type result struct {
		data []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		f, err := os.Open(path)
		if err != nil {
			done <- result{nil, err}
			return
		}
		defer f.Close()
		data, err := ReadOpen(f, limit)
		done <- result{data, err}
	}()
	select {
	case r := <-done:
		return r.data, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// IsUTF16 reports whether a text is UTF-16, as some programs on Windows save files: it begins with a byte
// order mark, or its first character, which is ASCII, has a zero byte.
func IsUTF16(text []byte) bool {
	for _, mark := range []string{"\xff\xfe", "\xfe\xff"} {
		if bytes.HasPrefix(text, []byte(mark)) {
			return true
		}
	}
	return bytes.IndexByte(text[:min(2, len(text))], 0) >= 0
}

// maxLinks limits how many symlinks are followed from one to the next.
const maxLinks = 20

// IsStream reports whether a path is, or links to, the path of an open file of the process or of a
// device: /dev/stdin, /dev/null, or the path that a shell passes for <(...) or >(...).
func IsStream(path string) bool {
	for range maxLinks {
		if (strings.HasPrefix(path, "/dev/") || strings.HasPrefix(path, "/proc/")) && !strings.HasPrefix(path, "/dev/shm/") {
			return true
		}
		target, err := os.Readlink(path)
		if err != nil {
			return false
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = target
	}
	return false
}
