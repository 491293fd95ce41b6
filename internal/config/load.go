package config

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"sandboxd/internal/envelope"
)

// maxFile bounds a config file in bytes.
const maxFile = 1 << 20

// Load reads the file at path over the defaults of the host. An empty path is the defaults alone.
func Load(path string, h Host) (Config, error) {
	c := Default(h)
	if path == "" {
		return c, nil
	}
	fi, err := os.Stat(path)
	if err != nil {
		return c, fmt.Errorf("config: %w; name an existing file with --config, or none for the defaults", err)
	}
	if fi.Size() > maxFile {
		return c, fmt.Errorf("config %s: %d bytes are more than a config may have (%d)", path, fi.Size(), maxFile)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return c, fmt.Errorf("config: %w", err)
	}
	if err := Parse(string(text), &c); err != nil {
		return c, fmt.Errorf("config %s: %w", path, err)
	}
	return c, nil
}

// Parse reads TOML text over c. Every fault is reported, each naming its key.
func Parse(text string, c *Config) error {
	var f file
	md, err := toml.Decode(text, &f)
	if err != nil {
		var pe toml.ParseError
		if errors.As(err, &pe) {
			return fmt.Errorf("line %d: %s", pe.Position.Line, pe.Message)
		}
		return err
	}
	if err := checkKeys(md); err != nil {
		return err
	}
	f.applyTo(c)
	return c.check()
}

// checkKeys holds the file to the exact names of the shape: TOML's decoder matches names without regard to case and
// passes over those it does not know.
func checkKeys(md toml.MetaData) error {
	known := map[string]bool{}
	collectKeys(reflect.TypeOf(file{}), "", known)
	var bad []error
	for _, k := range md.Keys() {
		name := strings.Join(k, ".")
		if !known[name] {
			bad = append(bad, fmt.Errorf("%s: unknown key%s", name, didYouMean(name, known)))
		}
	}
	return errors.Join(bad...)
}

func collectKeys(t reflect.Type, prefix string, into map[string]bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		name := prefix + f.Tag.Get("toml")
		into[name] = true
		if f.Type.Kind() == reflect.Struct {
			collectKeys(f.Type, name+".", into)
		}
	}
}

func didYouMean(name string, known map[string]bool) string {
	best, dist := "", 4
	names := make([]string, 0, len(known))
	for k := range known {
		names = append(names, k)
	}
	sort.Strings(names)
	for _, k := range names {
		if d := distance(strings.ToLower(name), k); d < dist {
			best, dist = k, d
		}
	}
	if best == "" {
		return "; see config.toml.example for all keys"
	}
	return fmt.Sprintf("; did you mean %s?", best)
}

// distance is the Levenshtein distance.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		prev := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			prev, row[j] = row[j], min(row[j]+1, row[j-1]+1, prev+cost)
		}
	}
	return row[len(b)]
}

func put[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

func putInt(to *int, from *int64) {
	if from != nil {
		*to = int(*from)
	}
}

func putU32(to *uint32, from *int64) {
	if from != nil {
		*to = uint32(max(min(*from, 1<<32-1), 0))
	}
}

func (f file) applyTo(c *Config) {
	put(&c.Socket.Path, f.Socket.Path)
	put(&c.Socket.Group, f.Socket.Group)
	put(&c.Socket.AdminGroup, f.Socket.AdminGroup)
	putInt(&c.Socket.MaxConns, f.Socket.MaxConns)
	putInt(&c.Socket.MaxConnsUser, f.Socket.MaxConnsUser)
	put(&c.State.Dir, f.State.Dir)
	put(&c.State.RunDir, f.State.RunDir)
	put(&c.Engine.Host, f.Engine.Host)
	put(&c.Engine.Runtime, f.Engine.Runtime)
	put(&c.Engine.CallTimeout, (*time.Duration)(f.Engine.CallTimeout))
	put(&c.Images.Default, f.Images.Default)
	put(&c.Images.Allow, f.Images.Allow)
	put(&c.Images.Pull, f.Images.Pull)
	f.Capacity.applyTo(&c.Capacity)
	putU32(&c.Slots.UIDFirst, f.Slots.UIDFirst)
	putU32(&c.Slots.UIDCount, f.Slots.UIDCount)
	putU32(&c.Slots.UIDStride, f.Slots.UIDStride)
	put(&c.Jobs.LeaseGrace, (*time.Duration)(f.Jobs.LeaseGrace))
	put(&c.Jobs.CancelGrace, (*time.Duration)(f.Jobs.CancelGrace))
	put(&c.Jobs.Retention, (*time.Duration)(f.Jobs.Retention))
	putInt(&c.Jobs.KeepPerUser, f.Jobs.KeepPerUser)
	put(&c.Workspace.Roots, f.Workspace.Roots)
	put(&c.Log.Level, f.Log.Level)
	put(&c.Log.JSON, f.Log.JSON)
	p := &c.Profiles[0]
	f.Defaults.apply(&p.Default, p.Origins)
	f.Limits.apply(&p.Limit, map[string]envelope.Origin{})
	p.Default.Runtime, p.Limit.Runtime = c.Engine.Runtime, c.Engine.Runtime
}

func (f fileCapacity) applyTo(c *Capacity) {
	putInt(&c.MaxRunning, f.MaxRunning)
	putInt(&c.MaxQueued, f.MaxQueued)
	if f.MaxRunning != nil {
		c.MaxRunningPerUser = max(c.MaxRunning/2, 1)
	}
	if f.MaxQueued != nil {
		c.MaxQueuedPerUser = max(c.MaxQueued/2, 1)
	}
	putInt(&c.MaxRunningPerUser, f.MaxRunningPerUser)
	putInt(&c.MaxQueuedPerUser, f.MaxQueuedPerUser)
	put(&c.MilliCPUs, (*int64)(f.CPUs))
	put(&c.Memory, (*int64)(f.Memory))
	put(&c.MinFreeDisk, (*int64)(f.MinFreeDisk))
}
