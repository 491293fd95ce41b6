package callerfs

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// request is what the helper is asked, one JSON message on a SOCK_SEQPACKET pair.
type request struct {
	UID    uint32   `json:"uid"`
	GID    uint32   `json:"gid"`
	Groups []uint32 `json:"groups"`
	Path   []byte   `json:"path"` // names need not be text
}

// reply comes back with the descriptor beside it, or with Why.
type reply struct {
	Why   string `json:"why,omitempty"`
	Fault string `json:"fault,omitempty"` // ours
}

const maxMessage = 64 << 10

// helperSocket is the descriptor the helper is given.
const helperSocket = 3

// HelperMain is the helper process: it takes the caller's rights, all of them and no more, and opens one path. Called
// by main before anything else when the first argument is HelperArg.
func HelperMain() int {
	runtime.LockOSThread() // rights are the thread's; every file call below stays on it
	sock := os.NewFile(helperSocket, "callerfs")
	c, err := net.FileConn(sock)
	if err != nil {
		fmt.Fprintln(os.Stderr, "this is a helper of the daemon and not for use by hand")
		return 2
	}
	_ = sock.Close()
	conn := c.(*net.UnixConn)
	buf := make([]byte, maxMessage)
	n, err := conn.Read(buf)
	if err != nil {
		return 1
	}
	var r request
	if err := json.Unmarshal(buf[:n], &r); err != nil {
		return 1
	}
	a, fd := serve(r)
	msg, err := json.Marshal(a)
	if err != nil {
		return 1
	}
	var oob []byte
	if fd >= 0 {
		oob = unix.UnixRights(fd)
	}
	if _, _, err := conn.WriteMsgUnix(msg, oob, nil); err != nil {
		return 1
	}
	return 0
}

func serve(r request) (reply, int) {
	if err := become(r); err != nil {
		return reply{Fault: err.Error()}, -1
	}
	fd, err := unix.Openat2(unix.AT_FDCWD, string(r.Path), &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS})
	if err != nil {
		return reply{Why: openWhy(err)}, -1
	}
	if why, err := judge(fd, r.UID); why != "" || err != nil {
		_ = unix.Close(fd)
		if err != nil {
			return reply{Fault: err.Error()}, -1
		}
		return reply{Why: why}, -1
	}
	return reply{}, fd
}

// judge says why a path that was opened is not given out all the same: O_PATH asks for no right to read, opens what
// is neither file nor directory, and may hold what is gone.
func judge(fd int, uid uint32) (why string, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return openWhy(err), nil
	}
	need := uint32(unix.R_OK)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		need |= unix.X_OK
	case unix.S_IFREG:
	default:
		return "is neither a directory nor a regular file", nil
	}
	if err := unix.Faccessat2(fd, "", need, unix.AT_EMPTY_PATH|unix.AT_EACCESS); err != nil {
		return fmt.Sprintf("cannot be read by you (uid %d): %v", uid, err), nil
	}
	name, err := os.Readlink(descriptor(fd))
	switch {
	case errors.Is(err, unix.ENAMETOOLONG):
		return openWhy(err), nil
	case err != nil:
		return "", err
	case st.Nlink == 0 || strings.HasSuffix(name, deletedMark) && !names(name, st):
		return "was deleted", nil
	}
	return "", nil
}

// deletedMark is what the kernel adds to the name of a descriptor whose name is gone. A file may be called so, too.
const deletedMark = " (deleted)"

func names(path string, st unix.Stat_t) bool {
	var found unix.Stat_t
	return unix.Lstat(path, &found) == nil && found.Dev == st.Dev && found.Ino == st.Ino
}

func openWhy(err error) string {
	switch {
	case errors.Is(err, unix.ENOENT):
		return "does not exist"
	case errors.Is(err, unix.EACCES):
		return "cannot be reached with your rights"
	case errors.Is(err, unix.ELOOP):
		return "goes through links that are not followed"
	case errors.Is(err, unix.ENOTDIR):
		return "goes through something that is not a directory"
	case errors.Is(err, unix.ENAMETOOLONG):
		return "is too long a path"
	}
	return "cannot be opened: " + err.Error()
}

// become takes the caller's ids on this thread and gives up every capability, for uid 0 too.
func become(r request) error {
	groups := make([]int, len(r.Groups))
	for i, g := range r.Groups {
		groups[i] = int(g)
	}
	// The raw calls change this thread alone, which is the one that opens.
	if err := setgroups(groups); err != nil {
		return fmt.Errorf("setgroups: %w", err)
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESGID, uintptr(r.GID), uintptr(r.GID), uintptr(r.GID)); e != 0 {
		return fmt.Errorf("setresgid: %w", e)
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(r.UID), uintptr(r.UID), uintptr(r.UID)); e != 0 {
		return fmt.Errorf("setresuid: %w", e)
	}
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&hdr, &none[0]); err != nil {
		return fmt.Errorf("capset: %w", err)
	}
	return nil
}
