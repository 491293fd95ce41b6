package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/urfave/cli/v3"

	"sandboxd/api"
)

// taskRequest is what a task file may hold: the request, and names of files with environment.
type taskRequest struct {
	api.JobRequest
	EnvFile []string `json:"env_file,omitempty"`
}

// taskFile reads the file of --task. Both formats go through one strict reader: an unknown field, a wrong type and a
// bad amount are errors that name the field. Paths in the file are relative to its folder.
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
		return api.JobRequest{}, usage(cmd, "--task: %s: %v", path, blame(raw, err))
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
	var fields map[string]any
	if err := toml.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}

func strict(raw []byte, out any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(out); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more behind the end of the object")
	}
	return nil
}

// blame finds the field that an error is about, by reading the fields one at a time, and says it in our words.
func blame(raw []byte, err error) error {
	read := func(b []byte) error { return strict(b, &taskRequest{}) }
	var path []string
	for {
		var fields map[string]json.RawMessage
		if json.Unmarshal(raw, &fields) != nil || len(fields) == 0 {
			break
		}
		found := false
		for _, key := range slices.Sorted(maps.Keys(fields)) {
			one, _ := json.Marshal(map[string]json.RawMessage{key: fields[key]}) // was JSON a moment ago
			if e := read(wrapAll(path, one)); e != nil {
				path, raw, err, found = append(path, key), fields[key], e, true
				break
			}
		}
		if !found {
			break
		}
	}
	return explain(path, err)
}

// wrapAll puts an object into the objects above it.
func wrapAll(path []string, b []byte) []byte {
	for _, key := range slices.Backward(path) {
		b, _ = json.Marshal(map[string]json.RawMessage{key: b}) // a key and JSON
	}
	return b
}

func explain(path []string, err error) error {
	where := strings.Join(path, ".")
	var wrong *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &wrong):
		return fmt.Errorf("%s: a %s where %s is needed", where, wrong.Value, kindName(wrong.Type))
	case errors.As(err, &syntax):
		return fmt.Errorf("byte %d: %w", syntax.Offset, err)
	case where == "":
		return err
	case !known(path):
		e := "there is no field " + where
		if near := nearest(path[len(path)-1], fieldNames(path[:len(path)-1])); near != "" {
			e += "; did you mean " + near + "?"
		}
		return errors.New(e)
	}
	return fmt.Errorf("%s: %w", where, err)
}

func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "a table"
	}
	return "a number"
}

// fieldNames lists the fields of the object at path.
func fieldNames(path []string) []string {
	t := reflect.TypeFor[taskRequest]()
	for _, key := range path {
		f, ok := fieldOf(t, key)
		if !ok {
			return nil
		}
		for t = f.Type; t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice; {
			t = t.Elem()
		}
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	var names []string
	for _, f := range reflect.VisibleFields(t) {
		if name := jsonName(f); name != "" {
			names = append(names, name)
		}
	}
	return names
}

func known(path []string) bool {
	names := fieldNames(path[:len(path)-1])
	return names == nil || slices.Contains(names, path[len(path)-1])
}

func fieldOf(t reflect.Type, key string) (reflect.StructField, bool) {
	if t.Kind() != reflect.Struct {
		return reflect.StructField{}, false
	}
	for _, f := range reflect.VisibleFields(t) {
		if jsonName(f) == key {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}
