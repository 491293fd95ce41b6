package callerfs

import (
	"encoding/json"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

func socketPair() (*net.UnixConn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socketpair: %w", err)
	}
	a, b := os.NewFile(uintptr(fds[0]), "callerfs"), os.NewFile(uintptr(fds[1]), "callerfs-helper")
	c, err := net.FileConn(a)
	_ = a.Close()
	if err != nil {
		_ = b.Close()
		return nil, nil, err
	}
	return c.(*net.UnixConn), b, nil
}

// exchange sends the request and takes the descriptor, which is the caller's to close; -1 beside an error.
func exchange(c *net.UnixConn, r request) (int, error) {
	msg, err := json.Marshal(r)
	if err != nil {
		return -1, err
	}
	if _, err := c.Write(msg); err != nil {
		return -1, fmt.Errorf("asking the path helper: %w", err)
	}
	buf, oob := make([]byte, maxMessage), make([]byte, unix.CmsgSpace(4*4))
	n, oobn, _, _, err := c.ReadMsgUnix(buf, oob)
	if err != nil {
		return -1, fmt.Errorf("hearing the path helper: %w", err)
	}
	fds, err := rights(oob[:oobn])
	if err != nil {
		return -1, err
	}
	closeAll := func() {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
	}
	var a reply
	if err := json.Unmarshal(buf[:n], &a); err != nil {
		closeAll()
		return -1, fmt.Errorf("the path helper's answer: %w", err)
	}
	switch {
	case a.Why != "":
		closeAll()
		return -1, &Refusal{string(r.Path), a.Why}
	case a.Fault != "" || len(fds) != 1:
		closeAll()
		return -1, fmt.Errorf("path helper: %s", a.Fault)
	}
	return fds[0], nil
}

func rights(oob []byte) ([]int, error) {
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	var fds []int
	for _, m := range msgs {
		more, err := unix.ParseUnixRights(&m)
		if err != nil {
			return nil, err
		}
		fds = append(fds, more...)
	}
	return fds, nil
}
