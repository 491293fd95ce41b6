package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func baseRecipe(r recipe) recipe {
	r.Packages = []string{"ca-certificates", "curl", "git", "python3", "python3-pip", "python3-venv"}
	r.PathsOut = []string{
		"/usr/share/doc/*", "/usr/share/info/*", "/usr/share/locale/*", "/usr/share/man/*", "/usr/share/lintian/*",
	}
	// Compiled Python stays: it is checked by the source's hash, not its time (SOURCE_DATE_EPOCH), so it is
	// the same in every build, and without it the imports of a job take four times as long.
	r.BelowOut = []string{"dev", "proc", "run", "sys", "tmp", "var/tmp", "var/lib/apt/lists", "etc/apt/auth.conf.d", "etc/apt/sources.list.d"}
	r.FilesOut = []string{"var/cache/apt", "var/cache/ldconfig", "var/log", "var/lib/apt", "var/lib/systemd"}
	r.PatternOut = []string{
		// Written at build time: backups, locks, this machine's identity.
		"etc/*-", "etc/.pwd.lock", "var/lib/dpkg/*-old", "var/lib/dpkg/lock*", "var/cache/debconf/*-old",
		"etc/hostname", "etc/hosts", "etc/machine-id", "etc/resolv.conf", "var/lib/dbus/machine-id",
		// How this machine reaches its packages.
		"etc/apt/sources.list", "etc/apt/apt.conf.d/99mmdebstrap",
	}
	r.fill = fillBase
	return r
}

// fillBase takes a fresh Debian from mmdebstrap into the layer.
func fillBase(ctx context.Context, r recipe, l *layer, dir string) error {
	if r.Codename == "" || !onPath("apt-get", "apt-config") {
		return errors.New("base is made from the machine's own Debian or Ubuntu; elsewhere: docker build -t sandboxd/base -f images/Dockerfile.base images")
	}
	if err := needProgram(ctx, "mmdebstrap"); err != nil {
		return err
	}
	args, err := mmdebstrapArgs(ctx, r, dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, 10*time.Minute, errors.New("no end after 10 minutes"))
	defer cancel()
	cmd := exec.CommandContext(ctx, "mmdebstrap", args...)
	cmd.Env = buildEnv(r)
	// It unmounts and removes what it made when it is asked to stop, so it is given the time.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	var said bytes.Buffer
	cmd.Stderr = &said
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	treeErr := l.tree(stdout, r.leftOut)
	io.Copy(io.Discard, stdout) // else a stream we gave up on would leave it waiting for a reader
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("mmdebstrap: %w: %s", because(ctx, err), tail(said.Bytes()))
	}
	return treeErr
}

// mmdebstrapArgs writes the apt files mmdebstrap needs into dir and returns its arguments.
func mmdebstrapArgs(ctx context.Context, r recipe, dir string) ([]string, error) {
	sources, err := aptSources(ctx, r.host)
	if err != nil {
		return nil, err
	}
	acquire, err := aptAcquire(ctx)
	if err != nil {
		return nil, err
	}
	sourcesFile, acquireFile := filepath.Join(dir, "sources.list"), filepath.Join(dir, "apt.conf")
	if err := errors.Join(
		os.WriteFile(sourcesFile, []byte(sources), 0o600),
		os.WriteFile(acquireFile, []byte(acquire+"APT::Install-Recommends \"false\";\n"), 0o600),
	); err != nil {
		return nil, err
	}
	args := []string{
		"--variant=minbase", "--format=tar", "--include=" + strings.Join(r.Packages, ","),
		"--aptopt=" + acquireFile, "--dpkgopt=force-unsafe-io",
	}
	for _, p := range r.PathsOut {
		args = append(args, "--dpkgopt=path-exclude="+p)
	}
	return append(args, r.Codename, "-", sourcesFile), nil
}

// buildEnv is the environment the packages' scripts run in: fixed, but for the ways to the network.
func buildEnv(r recipe) []string {
	env := []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8", "TZ=UTC",
		"DEBIAN_FRONTEND=noninteractive", "PYTHONHASHSEED=0", "SOURCE_DATE_EPOCH=" + strconv.FormatInt(r.Epoch, 10),
	}
	for _, name := range []string{"TMPDIR", "http_proxy", "https_proxy", "no_proxy"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// leftOut tells whether a file of the fresh tree stays out of the image.
func (r recipe) leftOut(name string, isFolder bool) bool {
	for _, f := range r.BelowOut {
		if strings.HasPrefix(name, f+"/") {
			return true
		}
	}
	for _, f := range r.FilesOut {
		if !isFolder && strings.HasPrefix(name, f+"/") {
			return true
		}
	}
	for _, pattern := range r.PatternOut {
		if ok, _ := path.Match(pattern, name); ok {
			return true
		}
	}
	return false
}
