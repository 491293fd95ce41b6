package envelope

import (
	"strconv"
	"time"
)

// amount is one ordered quantity of a posture: a smaller value is narrower. The table below is the only list of them.
type amount struct {
	name string // as in requests, configs and errors
	at   func(*Posture) *int64
	min  int64
	show func(int64) string
}

// Smallest values that make a working container.
const (
	MinMilliCPUs = 10
	MinMemory    = 64 << 20
	MinTmpfs     = 64 << 10
	MinKeep      = 64 << 10
	MinTimeoutMS = 1000
)

var amounts = []amount{
	{"cpus", func(p *Posture) *int64 { return &p.MilliCPUs }, MinMilliCPUs, showCPUs},
	{"memory", func(p *Posture) *int64 { return &p.Memory }, MinMemory, ShowBytes},
	{"pids", func(p *Posture) *int64 { return &p.Pids }, 1, showCount},
	{"nofile", func(p *Posture) *int64 { return &p.Nofile }, 16, showCount},
	{"tmp_bytes", func(p *Posture) *int64 { return &p.TmpBytes }, MinTmpfs, ShowBytes},
	{"home_bytes", func(p *Posture) *int64 { return &p.HomeBytes }, MinTmpfs, ShowBytes},
	{"out_bytes", func(p *Posture) *int64 { return &p.OutBytes }, MinTmpfs, ShowBytes},
	{"output_keep", func(p *Posture) *int64 { return &p.OutputKeep }, MinKeep, ShowBytes},
	{"timeout", func(p *Posture) *int64 { return &p.TimeoutMS }, MinTimeoutMS, showMS},
}

// AmountNames lists the fields a request may narrow, in the order of the table.
func AmountNames() []string {
	names := make([]string, len(amounts))
	for i, a := range amounts {
		names[i] = a.name
	}
	return names
}

// Amount returns the value of the named amount; ok is false for a name that is none.
func (p Posture) Amount(name string) (v int64, ok bool) {
	for _, a := range amounts {
		if a.name == name {
			return *a.at(&p), true
		}
	}
	return 0, false
}

// ShowBytes writes an amount of bytes with the largest unit that divides it.
func ShowBytes(n int64) string {
	for _, u := range []struct {
		name   string
		factor int64
	}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n >= u.factor && n%u.factor == 0 {
			return strconv.FormatInt(n/u.factor, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}

func showCPUs(n int64) string  { return strconv.FormatFloat(float64(n)/1000, 'f', -1, 64) }
func showCount(n int64) string { return strconv.FormatInt(n, 10) }
func showMS(n int64) string    { return (time.Duration(n) * time.Millisecond).String() }

// Field is one effective value with its origin, for people.
type Field struct {
	Name, Value string
	Origin      Origin
}

// Fields lists everything that bounds a job, in a stable order.
func (e Envelope) Fields() []Field {
	origin := func(name string) Origin {
		if o, ok := e.Origins[name]; ok {
			return o
		}
		return FromDefault
	}
	p := e.Posture
	out := []Field{
		{"image", p.ImageID, origin("image")},
		{"runtime", p.Runtime, origin("runtime")},
	}
	for _, a := range amounts {
		out = append(out, Field{a.name, a.show(*a.at(&p)), origin(a.name)})
	}
	return append(out,
		Field{"inodes", showCount(p.Inodes), origin("inodes")},
		Field{"home_exec", strconv.FormatBool(p.HomeExec), origin("home_exec")})
}
