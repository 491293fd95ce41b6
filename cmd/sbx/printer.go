package main

import (
	"bytes"
	"hash/fnv"
	"io"

	"sandboxd/api"
	"sandboxd/client"
)

// maxLine bounds what is held back while waiting for the end of a line; longer lines are broken.
const maxLine = 64 << 10

// printer passes records on: byte by byte, or by whole lines where something stands before each.
type printer struct {
	stdout, stderr io.Writer
	notes          interface{ note(string, ...any) }
	lines          []*lineWriter // of both, when something stands before each line
	timed          bool          // that is the time of the record the line begins in
}

// prefix puts a label before every line. Its colour, on a terminal, is always the same for the same label.
func (p *printer) prefix(label string) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(label))
	colour := []string{"32", "33", "34", "35", "36", "92", "93", "94", "95", "96"}[h.Sum32()%10]
	wrap := func(w io.Writer) io.Writer {
		text := clean(label)
		if o, ok := w.(*output); ok {
			text = o.paint(colour, text)
		}
		l := &lineWriter{w: w, prefix: []byte(text + " | ")}
		p.lines = append(p.lines, l)
		return l
	}
	p.stdout, p.stderr = wrap(p.stdout), wrap(p.stderr)
}

// timestamps puts the time of its first byte before every line.
func (p *printer) timestamps() {
	wrap := func(w io.Writer) io.Writer {
		l := &lineWriter{w: w}
		p.lines, p.timed = append(p.lines, l), true
		return l
	}
	p.stdout, p.stderr = wrap(p.stdout), wrap(p.stderr)
}

func (p *printer) record(r api.Record) error {
	if p.timed {
		for _, l := range p.lines {
			l.next = []byte(timeText(r.Time) + " ")
		}
	}
	var err error
	switch r.Kind {
	case api.KindStdout:
		_, err = p.stdout.Write(r.Payload)
	case api.KindStderr:
		_, err = p.stderr.Write(r.Payload)
	case api.KindGap:
		if err = p.finish(); err == nil {
			p.notes.note("%d bytes of output are left out here; they are over what is kept (output_keep)", client.GapSize(r))
		}
	}
	return err
}

// finish writes lines that have no end yet.
func (p *printer) finish() error {
	for _, l := range p.lines {
		if err := l.flush(); err != nil {
			return err
		}
	}
	return nil
}

// lineWriter writes whole lines, each with its prefix in one write, so that several processes can share a terminal.
type lineWriter struct {
	w      io.Writer
	prefix []byte
	next   []byte // replaces prefix from the next line on
	line   []byte
}

func (l *lineWriter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		if len(l.line) == 0 && l.next != nil {
			l.prefix = l.next
		}
		part, ends := p, false
		if i := bytes.IndexByte(p, '\n'); i >= 0 {
			part, ends = p[:i], true
		}
		part = part[:min(len(part), maxLine-len(l.line))]
		l.line = append(l.line, part...)
		p = p[len(part):]
		if ends && len(p) > 0 && p[0] == '\n' {
			p = p[1:]
		} else if len(l.line) < maxLine {
			continue
		}
		if err := l.write(); err != nil {
			return 0, err
		}
	}
	return n, nil
}

func (l *lineWriter) flush() error {
	if len(l.line) == 0 {
		return nil
	}
	return l.write()
}

func (l *lineWriter) write() error {
	out := make([]byte, 0, len(l.prefix)+len(l.line)+1)
	out = append(append(append(out, l.prefix...), l.line...), '\n')
	l.line = l.line[:0]
	_, err := l.w.Write(out)
	return err
}
