package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/urfave/cli/v3"
	"golang.org/x/sys/unix"

	"sandboxd/api"
)

// maxProjectFile bounds a project file in bytes.
const maxProjectFile = 64 << 10

// setProject reads the project file in the root of the workspace, if there is one. Whoever wrote the workspace wrote it,
// so it can only narrow, and it is read with care: a link, a pipe or a device of that name is refused.
func setProject(cmd *cli.Command, req *api.JobRequest) error {
	if req.Workspace == nil || req.Workspace.Path == "" || cmd.Bool("no-project") {
		return nil
	}
	path := filepath.Join(req.Workspace.Path, api.ProjectFile)
	raw, err := readProject(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) { // what the workspace is, the daemon says
		return nil
	}
	refuse := func(err error) error { return usage(cmd, "%s: %v; --no-project goes without it", path, err) }
	if err != nil {
		return refuse(err)
	}
	if raw, err = tomlAsJSON(raw); err != nil {
		return refuse(err)
	}
	var p api.ProjectLimits
	t := reflect.TypeOf(p)
	if err := strict(raw, &p); err != nil {
		return refuse(fmt.Errorf("%w; it may hold %s", blame(raw, t, err), strings.Join(fieldNames(t, nil), ", ")))
	}
	req.Project = &p
	return nil
}

func readProject(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, errors.New("is a link, and a project file must not be one")
	}
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return nil, pathError.Err
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, errors.Join(errors.New("is not a regular file"), err)
	}
	return readUpTo(f, maxProjectFile)
}
