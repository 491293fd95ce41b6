package supervise

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"

	"sandboxd/internal/wire"
)

// defaultPath is searched when the job's environment has no PATH. It is not added to that environment.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// lookup finds the program as a shell would: a name with a slash is a path, any other is searched in the job's own
// PATH. What is nowhere fails as lookup, what is there and may not be executed as exec.
func lookup(name string, env []string) (string, *wire.StartError) {
	if strings.Contains(name, "/") {
		err := executable(name)
		if absent(err) {
			return "", startError(wire.OpLookup, name, err, "not found")
		}
		if err != nil {
			return "", startError(wire.OpExec, name, err, notExecutable(err))
		}
		return name, nil
	}
	var seen string
	var why error
	for dir := range strings.SplitSeq(searchPath(env), ":") {
		if dir == "" {
			dir = "." // as POSIX has it
		}
		candidate := dir + "/" + name
		err := executable(candidate)
		if err == nil {
			return candidate, nil
		}
		if !absent(err) && seen == "" {
			seen, why = candidate, err
		}
	}
	if seen != "" {
		return "", startError(wire.OpExec, seen, why, notExecutable(why))
	}
	return "", startError(wire.OpLookup, name, unix.ENOENT, "not found in PATH")
}

func searchPath(env []string) string {
	for _, kv := range env {
		if path, ok := strings.CutPrefix(kv, "PATH="); ok {
			return path
		}
	}
	return defaultPath
}

// executable is nil for a regular file that this process may execute, noexec mounts considered.
func executable(path string) error {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return unix.EISDIR
	}
	return unix.Access(path, unix.X_OK)
}

func absent(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) }

func notExecutable(err error) string {
	switch {
	case errors.Is(err, unix.EISDIR):
		return "is not executable"
	case errors.Is(err, unix.EACCES):
		return "is not executable: no x permission, or on a noexec mount"
	}
	return "cannot be executed"
}
