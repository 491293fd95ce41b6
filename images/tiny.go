package main

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const noBusybox = "tiny needs a static busybox: put one on PATH, or install it (Debian, Ubuntu: apt-get install busybox-static)"

func tinyRecipe(r recipe) recipe {
	r.Files = map[string]string{
		"etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n",
		"etc/group":  "root:x:0:\nnobody:x:65534:\n",
	}
	r.fill = fillTiny
	return r
}

// fillTiny puts busybox, a link for each of its applets and the account files into the layer.
func fillTiny(ctx context.Context, r recipe, l *layer, dir string) error {
	busybox, err := staticBusybox(ctx, dir)
	if err != nil {
		return err
	}
	f, err := os.Open(busybox)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := l.file("bin/busybox", 0o755, f); err != nil {
		return err
	}
	list, err := exec.CommandContext(ctx, busybox, "--list-full").Output()
	if err != nil {
		return fmt.Errorf("%s --list-full: %w", busybox, err)
	}
	for applet := range strings.FieldsSeq(string(list)) {
		if clean(applet) == "bin/busybox" {
			continue
		}
		if err := l.symlink(applet, "/bin/busybox"); err != nil {
			return err
		}
	}
	for name, content := range r.Files {
		if err := l.file(name, 0o644, strings.NewReader(content)); err != nil {
			return err
		}
	}
	return nil
}

// staticBusybox returns the path of a static busybox: the machine's own, or one unpacked into dir from
// the distribution's package.
func staticBusybox(ctx context.Context, dir string) (string, error) {
	if own, err := exec.LookPath("busybox"); err == nil && isStatic(own) {
		return own, nil
	}
	if !onPath("apt-get", "dpkg-deb") {
		return "", errors.New(noBusybox)
	}
	if err := withFreshLists(ctx, func() error {
		return aptCommand(ctx, dir, "apt-get", "download", "busybox-static")
	}); err != nil {
		return "", fmt.Errorf("%s; fetching that package failed: %w", noBusybox, err)
	}
	packages, err := filepath.Glob(filepath.Join(dir, "busybox-static_*.deb"))
	if err != nil || len(packages) != 1 {
		return "", fmt.Errorf("%s; apt-get download left %d packages", noBusybox, len(packages))
	}
	tree := filepath.Join(dir, "busybox")
	if err := aptCommand(ctx, dir, "dpkg-deb", "-x", packages[0], tree); err != nil {
		return "", err
	}
	for _, place := range []string{"bin/busybox", "usr/bin/busybox"} {
		if path := filepath.Join(tree, place); isStatic(path) {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s; the package's busybox is not static", noBusybox)
}

// isStatic tells whether a program runs without a loader and libraries.
func isStatic(program string) bool {
	f, err := elf.Open(program)
	if err != nil {
		return false
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return false
		}
	}
	return true
}
