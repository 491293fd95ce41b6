package envelope

import (
	"strconv"
	"time"

	"sandboxd/internal/budget"
)

// amount is one ordered quantity of a posture: a smaller value is narrower. The table below is the only list of them.
type amount struct {
	name string // as in requests, configs and errors
	path string // of the Go field
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
	{"cpus", "Posture.MilliCPUs", func(p *Posture) *int64 { return &p.MilliCPUs }, MinMilliCPUs, showCPUs},
	{"memory", "Posture.Memory", func(p *Posture) *int64 { return &p.Memory }, MinMemory, ShowBytes},
	{"pids", "Posture.Pids", func(p *Posture) *int64 { return &p.Pids }, 1, showCount},
	{"nofile", "Posture.Nofile", func(p *Posture) *int64 { return &p.Nofile }, 16, showCount},
	{"tmp_bytes", "Posture.TmpBytes", func(p *Posture) *int64 { return &p.TmpBytes }, MinTmpfs, ShowBytes},
	{"home_bytes", "Posture.HomeBytes", func(p *Posture) *int64 { return &p.HomeBytes }, MinTmpfs, ShowBytes},
	{"out_bytes", "Posture.OutBytes", func(p *Posture) *int64 { return &p.OutBytes }, MinTmpfs, ShowBytes},
	{"output_keep", "Posture.OutputKeep", func(p *Posture) *int64 { return &p.OutputKeep }, MinKeep, ShowBytes},
	{"timeout", "Posture.TimeoutMS", func(p *Posture) *int64 { return &p.TimeoutMS }, MinTimeoutMS, showMS},
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
func ShowBytes(n int64) string { return budget.ShowBytes(n) }

func showCPUs(n int64) string  { return strconv.FormatFloat(float64(n)/1000, 'f', -1, 64) }
func showCount(n int64) string { return strconv.FormatInt(n, 10) }
func showMS(n int64) string    { return (time.Duration(n) * time.Millisecond).String() }
