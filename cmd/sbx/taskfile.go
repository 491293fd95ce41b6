package main

import (
	"bytes"
	"maps"
	"path/filepath"
	"reflect"

	"github.com/urfave/cli/v3"

	"sandboxd/api"
)

// taskRequest is what a task file may hold: the request, and names of files with environment.
type taskRequest struct {
	api.JobRequest
	EnvFile []string `json:"env_file,omitempty"`
}

// taskFile reads the file of --task. Paths in it are relative to its folder.
func (a *app) taskFile(cmd *cli.Command) (api.JobRequest, error) {
	path := cmd.String("task")
	if path == "" {
		return api.JobRequest{}, nil
	}
	raw, err := a.readFile(path, api.MaxBodyBytes)
	if err != nil {
		return api.JobRequest{}, usage(cmd, "--task: %v", err)
	}
	if raw, err = asJSON(path, raw); err != nil {
		return api.JobRequest{}, usage(cmd, "--task: %s: %v", path, err)
	}
	var t taskRequest
	if err := strict(raw, &t); err != nil {
		return api.JobRequest{}, usage(cmd, "--task: %s: %v", path, blame(raw, reflect.TypeOf(t), err))
	}
	if t.Project != nil {
		return api.JobRequest{}, usage(cmd, "--task: %s: project: comes from %s in the workspace", path, api.ProjectFile)
	}
	if err := t.resolve(cmd, path); err != nil {
		return api.JobRequest{}, err
	}
	return t.JobRequest, nil
}

// resolve makes the file's paths absolute and reads its environment files.
func (t *taskRequest) resolve(cmd *cli.Command, path string) error {
	dir := filepath.Dir(path) // of "-" this is "."
	var err error
	if w := t.Workspace; w != nil && w.Path != "" {
		if w.Path, err = absoluteFrom(dir, w.Path); err != nil {
			return usage(cmd, "--task: %s: workspace.path: %v", path, err)
		}
	}
	for i := range t.Mounts {
		if t.Mounts[i].Source == "" {
			continue
		}
		if t.Mounts[i].Source, err = absoluteFrom(dir, t.Mounts[i].Source); err != nil {
			return usage(cmd, "--task: %s: mounts[%d].source: %v", path, i, err)
		}
	}
	fromFiles := map[string]string{}
	for _, file := range t.EnvFile {
		if file, err = absoluteFrom(dir, file); err != nil {
			return usage(cmd, "--task: %s: env_file: %v", path, err)
		}
		env, err := envFile(cmd, file)
		if err != nil {
			return err
		}
		maps.Copy(fromFiles, env)
	}
	addAll(&fromFiles, t.Env)
	addAll(&t.Env, fromFiles)
	return nil
}

// asJSON turns TOML into JSON. What begins with { is JSON, whatever the file is called.
func asJSON(path string, raw []byte) ([]byte, error) {
	if filepath.Ext(path) == ".json" || bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{")) {
		return raw, nil
	}
	return tomlAsJSON(raw)
}
