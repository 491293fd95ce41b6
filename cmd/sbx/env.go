package main

import (
	"os"
	"strings"

	"github.com/urfave/cli/v3"

	"sandboxd/api"
)

// setEnv reads --env-file and then --env, each later one winning. A name alone passes on the value it has here; one
// that has none is left out, as docker does.
func setEnv(cmd *cli.Command, req *api.JobRequest) error {
	for _, path := range cmd.StringSlice("env-file") {
		env, err := envFile(cmd, path)
		if err != nil {
			return err
		}
		addAll(&req.Env, env)
	}
	env := map[string]string{}
	for _, given := range cmd.StringSlice("env") {
		if why := addEnv(env, given); why != "" {
			return usage(cmd, "--env: %.80q %s", given, why)
		}
	}
	addAll(&req.Env, env)
	return nil
}

// envFile reads lines of NAME=VALUE or NAME. The value is everything behind the =, quotes and blanks included.
func envFile(cmd *cli.Command, path string) (map[string]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, usage(cmd, "--env-file: %v", err)
	}
	defer f.Close()
	b, err := readUpTo(f, api.MaxArgEnvBytes)
	if err != nil {
		return nil, usage(cmd, "--env-file: %s: %v", path, err)
	}
	env := map[string]string{}
	n := 0
	for line := range strings.Lines(strings.TrimPrefix(string(b), "\ufeff")) {
		n++
		line = strings.TrimRight(line, "\r\n")
		if left := strings.TrimLeft(line, " \t"); left == "" || left[0] == '#' {
			continue
		}
		if why := addEnv(env, strings.TrimLeft(line, " \t")); why != "" {
			return nil, usage(cmd, "--env-file: %s:%d: %.80q %s", path, n, line, why)
		}
	}
	return env, nil
}

// addEnv adds one NAME=VALUE or NAME; it returns what is wrong with it.
func addEnv(env map[string]string, given string) string {
	name, value, assigned := strings.Cut(given, "=")
	switch {
	case name == "":
		return "has no name; write NAME=VALUE, or NAME to pass on the value here"
	case strings.ContainsAny(name, " \t\x00"):
		return "has a blank in its name; write NAME=VALUE"
	case strings.ContainsRune(value, 0):
		return "has a NUL byte in its value"
	}
	if !assigned {
		var set bool
		if value, set = os.LookupEnv(name); !set {
			return ""
		}
	}
	env[name] = value
	return ""
}
