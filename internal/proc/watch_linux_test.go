package proc

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// A living process is not reported as gone because the watching one has too many files open. This test
// is not parallel: the limit holds for the whole process.
func TestWatchWithoutFreeDescriptors(t *testing.T) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	gone, stop := Watch(os.Getpid())
	err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)
	defer stop()
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-gone:
		t.Error("this process is reported as gone")
	default:
	}
}
