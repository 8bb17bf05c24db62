package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// mount sets up the child's mount namespace: everything is read-only except the folders that the
// policy makes writable, and in these the protected paths are read-only.
//
// Each writable folder is cloned before the rest becomes read-only, and then mounted over itself.
// This preserves the mount flags that the system had set.
func (p Policy) mount() error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private: %w", err)
	}
	for _, o := range p.Overlays {
		if err := o.mount(); err != nil {
			return err
		}
	}
	writable := p.writable()
	var trees []tree
	defer func() {
		for _, t := range trees {
			_ = unix.Close(t.fd)
		}
	}()
	for _, dir := range append(slices.Clone(writable), p.noExec()...) {
		t, err := clone(dir, unix.AT_RECURSIVE)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return err
		}
		trees = append(trees, t)
		var attributes uint64
		if p.Level == ReadOnly {
			attributes = unix.MOUNT_ATTR_NOEXEC
		}
		if !slices.Contains(writable, dir) {
			attributes |= unix.MOUNT_ATTR_RDONLY
		}
		if err := t.setAttributes(attributes, unix.AT_RECURSIVE); err != nil {
			return err
		}
	}
	for _, file := range p.executableBelow(p.noExec()) {
		t, err := clone(file, 0)
		if err != nil {
			return err
		}
		trees = append(trees, t)
		if err := t.setAttributes(unix.MOUNT_ATTR_RDONLY, 0); err != nil {
			return err
		}
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return fmt.Errorf("read-only: %w", err)
	}
	if p.OwnProcesses {
		if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
			return fmt.Errorf("/proc: %w", err)
		}
	}
	if _, err := os.Stat("/dev/shm"); err == nil && p.Level == Workspace {
		if err := unix.Mount("tmpfs", "/dev/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777"); err != nil {
			return fmt.Errorf("/dev/shm: %w", err)
		}
	}
	slices.SortStableFunc(trees, func(a, b tree) int { return depth(a.dir) - depth(b.dir) }) // parents before children
	for _, t := range trees {
		if err := t.attach(); err != nil {
			return err
		}
	}
	if err := p.protect(writable); err != nil {
		return err
	}
	return os.Chdir(dir) // enter the new mount at the same path
}

// protect mounts each protected path read-only over itself. It also mounts pinned folders and
// symlinks over themselves, because a mount point cannot be moved or replaced.
func (p Policy) protect(writable []string) error {
	below := func(path string) bool {
		return slices.ContainsFunc(writable, func(dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") })
	}
	pins := slices.Concat(p.Places.Pins, p.Places.Links)
	for _, at := range slices.Concat(p.Write, p.Places.PinParents) { // a root can be within another writable folder
		for _, dir := range writable {
			for parent := filepath.Dir(at); parent != dir && strings.HasPrefix(parent, dir+"/"); parent = filepath.Dir(parent) {
				pins = append(pins, parent)
			}
		}
	}
	paths := slices.DeleteFunc(append(slices.Clone(pins), p.Places.Keep...), func(path string) bool { return !below(path) })
	slices.SortFunc(paths, func(a, b string) int { return cmp.Or(depth(a)-depth(b), strings.Compare(a, b)) })
	for _, path := range slices.Compact(paths) {
		if err := p.mountOverItself(path, slices.Contains(p.Places.Keep, path), slices.Contains(p.Places.Links, path)); err != nil {
			return err
		}
	}
	return nil
}

// mountOverItself mounts a path over itself. If the mount is read-only, the child's own folders in it stay
// writable.
func (p Policy) mountOverItself(path string, readOnly, link bool) error {
	cloneTree := func() (tree, error) { return clone(path, unix.AT_RECURSIVE) }
	if link {
		cloneTree = func() (tree, error) { return cloneLink(path) }
	}
	t, err := cloneTree()
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(t.fd)
	var privateTrees []tree
	defer func() {
		for _, t := range privateTrees {
			_ = unix.Close(t.fd)
		}
	}()
	if readOnly {
		for _, dir := range append(p.Private[:len(p.Private):len(p.Private)], p.Temp) {
			if dir == "" || !strings.HasPrefix(dir, path+"/") {
				continue
			}
			inner, err := clone(dir, unix.AT_RECURSIVE)
			if err != nil {
				return err
			}
			privateTrees = append(privateTrees, inner)
		}
		if err := t.setAttributes(unix.MOUNT_ATTR_RDONLY, unix.AT_RECURSIVE); err != nil {
			return err
		}
	}
	for _, t := range append([]tree{t}, privateTrees...) {
		if err := t.attach(); err != nil {
			return err
		}
	}
	return nil
}

// noExec lists the folders from which a child at level ReadOnly must not execute programs. Without
// noexec mounts, it could run any readable file there through the dynamic loader.
func (p Policy) noExec() []string {
	if p.Level != ReadOnly {
		return nil
	}
	var out []string
	for _, dir := range append(slices.Clone(p.Write), filepath.Dir(p.Temp)) {
		if real, err := filepath.EvalSymlinks(dir); err == nil && real != "/" && !slices.Contains(out, real) {
			out = append(out, real)
		}
	}
	return out
}

// executableBelow lists the programs in dirs that the child may start despite noExec. For example,
// eca's own bash is in a temporary folder if the home folder is in one.
func (p Policy) executableBelow(dirs []string) (out []string) {
	for _, file := range p.Execute {
		if slices.ContainsFunc(dirs, func(dir string) bool { return strings.HasPrefix(file, dir+"/") }) && !slices.Contains(out, file) {
			out = append(out, file)
		}
	}
	return out
}

func depth(path string) int { return strings.Count(path, "/") }

// tree is a detached mount of a file or folder.
type tree struct {
	dir  string
	fd   int
	link bool // dir is a symlink
}

// clone creates a detached mount of a path, which must not contain symlinks.
func clone(path string, flags uint) (tree, error) {
	at, err := openPlain(path)
	if err != nil {
		return tree{}, err
	}
	defer unix.Close(at)
	fd, err := unix.OpenTree(at, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|flags)
	if err != nil {
		return tree{}, fmt.Errorf("%s: %w", path, err)
	}
	return tree{path, fd, false}, nil
}

// cloneLink creates a detached mount of a symlink. Once it is mounted over the symlink, the target is
// the same, but the symlink cannot be replaced.
func cloneLink(path string) (tree, error) {
	at, err := openLink(path)
	if err != nil {
		return tree{}, err
	}
	defer unix.Close(at)
	fd, err := unix.OpenTree(at, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	if err != nil {
		return tree{}, fmt.Errorf("%s: %w", path, err)
	}
	return tree{path, fd, true}, nil
}

// openLink opens a symlink, not its target. The path of its folder must not contain symlinks.
func openLink(path string) (int, error) {
	dir, err := openPlain(filepath.Dir(path))
	if err != nil {
		return 0, err
	}
	defer unix.Close(dir)
	fd, err := unix.Openat(dir, filepath.Base(path), unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return fd, nil
}

func openPlain(path string) (int, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return fd, nil
}

func (t tree) setAttributes(attributes uint64, flags uint) error {
	if attributes == 0 {
		return nil
	}
	if err := unix.MountSetattr(t.fd, "", unix.AT_EMPTY_PATH|flags, &unix.MountAttr{Attr_set: attributes}); err != nil {
		return fmt.Errorf("%s: %w", t.dir, err)
	}
	return nil
}

// attach mounts a tree at the path that it was cloned from.
func (t tree) attach() error {
	open := openPlain
	if t.link {
		open = openLink
	}
	at, err := open(t.dir)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	if err := unix.MoveMount(t.fd, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return fmt.Errorf("%s: %w", t.dir, err)
	}
	return nil
}

// mount mounts the overlay over its folder.
func (o Overlay) mount() error {
	options := "userxattr,index=off"
	for _, part := range [][2]string{{"lowerdir", o.Dir}, {"upperdir", o.Upper}, {"workdir", o.Work}} {
		if strings.ContainsAny(part[1], `,:\`) {
			return fmt.Errorf("overlay of %s: %s: a name with a comma, colon or backslash", o.Dir, part[1])
		}
		options += "," + part[0] + "=" + part[1]
	}
	if err := unix.Mount("overlay", o.Dir, "overlay", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return fmt.Errorf("overlay of %s: %w", o.Dir, err)
	}
	return nil
}
