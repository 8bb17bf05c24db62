package watch

import "syscall"

// Remote reports whether a folder is on a file system that can change without a notification on this
// machine: a network file system, or a FUSE file system.
func Remote(dir string) bool {
	var st syscall.Statfs_t
	if syscall.Statfs(dir, &st) != nil {
		return false
	}
	switch uint32(st.Type) { //nolint:gosec // magic numbers have 32 bits
	case 0x6969, // NFS
		0x517b, 0xfe534d42, 0xff534d42, // SMB, SMB2, CIFS
		0x65735546,             // FUSE: sshfs and others
		0x01021997,             // 9P: virtual machines, WSL
		0x00c36400,             // Ceph
		0x5346414f, 0x6b414653, // AFS
		0x0bd00bd0, // Lustre
		0x47504653, // GPFS
		0x73757245, // Coda
		0x786f4256: // VirtualBox's shared folders
		return true
	}
	return false
}
