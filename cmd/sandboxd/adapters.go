package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"sandboxd/internal/callerfs"
	"sandboxd/internal/job"
)

// hostPaths gives callerfs the words of admission and runner.
type hostPaths struct{ o *callerfs.Opener }

func (h hostPaths) Open(ctx context.Context, c job.Caller, path string) (*os.File, bool, error) {
	f, err := h.o.Open(ctx, callerfs.Caller{UID: c.UID, GID: c.GID, Groups: c.Groups}, path)
	var refused *callerfs.Refusal
	if errors.As(err, &refused) {
		return nil, false, job.Errorf(job.CodeWorkspace, "", "%s", refused.Error())
	}
	if err != nil {
		return nil, false, job.Wrap(job.CodeInternal, err, "%q could not be looked at", path)
	}
	return f.File, f.Dir, nil
}

func (h hostPaths) Check(ctx context.Context, c job.Caller, path string) (string, bool, error) {
	f, dir, err := h.Open(ctx, c, path)
	if err != nil {
		return "", false, err
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return "", false, fmt.Errorf("stat %q: %w", path, err)
	}
	// The job runs under a uid of its own and sees the tree as others do.
	need := uint32(0o4)
	if dir {
		need = 0o5
	}
	if st.Mode&need != need {
		e := job.Errorf(job.CodeWorkspace, "", "%q has mode %04o: a job runs under a uid of its own and could not read it", f.Name(), st.Mode&0o7777)
		return "", false, e.WithHint("chmod o+rX %s, or give a copy others may read", f.Name())
	}
	return f.Name(), dir, nil
}

// freeDisk is the folder whose file system must keep room.
type freeDisk string

func (f freeDisk) FreeDisk() (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(string(f), &st); err != nil {
		return 0, fmt.Errorf("statfs %s: %w", string(f), err)
	}
	return int64(st.Bavail) * st.Bsize, nil
}
