package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// aptSources returns the machine's own package sources for its release, as lines of a sources.list.
func aptSources(ctx context.Context, h host) (string, error) {
	const format = "$(REPO_URI)|$(RELEASE)|$(COMPONENT)|$(CODENAME)|$(ORIGIN)"
	var lines []string
	err := withFreshLists(ctx, func() error {
		cmd := exec.CommandContext(ctx, "apt-get", "indextargets", "--format", format, "Created-By: Packages")
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("apt-get indextargets: %w", err)
		}
		if lines = sourceLines(string(out), h); len(lines) == 0 {
			return fmt.Errorf("apt knows no source of %s %s; run 'apt-get update' as root, then see 'apt-get indextargets'", h.Distro, h.Codename)
		}
		return nil
	})
	return strings.Join(lines, "\n") + "\n", err
}

// sourceLines keeps the distribution's own release, updates and security sources; others may hold anything.
func sourceLines(targets string, h host) []string {
	var lines []string
	for target := range strings.Lines(targets) {
		f := strings.Split(strings.TrimSpace(target), "|")
		if len(f) != 5 {
			continue
		}
		uri, suite, component, codename, origin := f[0], f[1], f[2], f[3], f[4]
		_, pocket, _ := strings.Cut(suite, "-")
		// Ubuntu gives a pocket the bare codename, Debian adds the pocket's name to it.
		codename, _, _ = strings.Cut(codename, "-")
		if codename != h.Codename || !strings.EqualFold(origin, h.Distro) ||
			!slices.Contains([]string{"", "updates", "security"}, pocket) ||
			!slices.Contains([]string{"main", "universe"}, component) {
			continue
		}
		if line := fmt.Sprintf("deb %s %s %s", uri, suite, component); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// aptAcquire returns how the machine's apt reaches its sources (proxies, checks of dates), as lines of an
// apt.conf; without them the build would reach other places than the machine may.
func aptAcquire(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "apt-config", "dump").Output()
	if err != nil {
		return "", fmt.Errorf("apt-config dump: %w", err)
	}
	return acquireLines(string(out)), nil
}

func acquireLines(dump string) string {
	var kept strings.Builder
	for line := range strings.Lines(dump) {
		for _, key := range []string{"http::", "https::", "Retries ", "Check-Date ", "Check-Valid-Until ", "ForceIPv4 "} {
			if strings.HasPrefix(line, "Acquire::"+key) {
				kept.WriteString(line)
			}
		}
	}
	return kept.String()
}

// needProgram installs the package of a program that is missing, as root on a Debian-like system.
func needProgram(ctx context.Context, program string) error {
	if onPath(program) {
		return nil
	}
	if os.Geteuid() != 0 || !onPath("apt-get") {
		return fmt.Errorf("%s is not installed; install it as root (Debian, Ubuntu: apt-get install %s)", program, program)
	}
	return withFreshLists(ctx, func() error {
		return aptCommand(ctx, "", "apt-get", "install", "-y", "--no-install-recommends", program)
	})
}

// withFreshLists tries a step on apt's lists; where it fails, once more after apt-get update, if we may.
func withFreshLists(ctx context.Context, step func() error) error {
	err := step()
	if err == nil || os.Geteuid() != 0 || !onPath("apt-get") {
		return err
	}
	if err := aptCommand(ctx, "", "apt-get", "update"); err != nil {
		return err
	}
	return step()
}

// aptCommand runs a package tool in dir; its last words become part of the error.
func aptCommand(ctx context.Context, dir, name string, args ...string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 5*time.Minute, errors.New("no end after 5 minutes"))
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), because(ctx, err), tail(out))
	}
	return nil
}

// because puts the reason a context ended, if it did, before the error of the program it ended.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// tail returns the last lines of a program's output, for an error text.
func tail(out []byte) string {
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-6):], []byte("; ")))
}

func onPath(programs ...string) bool {
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			return false
		}
	}
	return true
}
