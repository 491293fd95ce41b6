package results_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"hash/crc32"
	"os"
	"testing"

	"pgregory.net/rapid"

	"sandboxd/internal/job"
	"sandboxd/internal/results"
)

// machine drives one stream through appends, crashes, cuts and reads, and compares with the model after each step.
type machine struct {
	model
	dir   string
	logs  *results.Logs
	id    job.ID
	w     *results.Writer
	keep  int64
	now   int64
	seed  uint64
	wrote int64 // size of the file before the newest append

	committed bool
	frames    []frame // since the last commit: init sends them again after a crash
}

type frame struct {
	kind uint8
	at   int64
	p    []byte
}

func (m *machine) open(t *rapid.T) {
	m.logs = results.New(m.dir)
	m.id, m.w = create(t, m.logs, m.keep)
	m.wrote = fileSize(t, m.logs.Path(m.id))
}

func (m *machine) appendSome(t *rapid.T) {
	kind := uint8(rapid.IntRange(1, 2).Draw(t, "kind"))
	size := rapid.OneOf(rapid.IntRange(1, 30), rapid.IntRange(1, 5000), rapid.IntRange(1, 30000)).Draw(t, "size")
	m.now += rapid.SampledFrom([]int64{0, 1e6, 3e7, -5e6}).Draw(t, "later")
	m.seed++
	m.wrote = fileSize(t, m.logs.Path(m.id))
	f := frame{kind, m.now, noise(m.seed, size)}
	m.write(t, m.w, f.kind, f.at, f.p)
	m.frames = append(m.frames, f)
}

func (m *machine) commit(t *rapid.T) {
	must(t, m.w.Commit(results.Mark{Seq: m.seed, Stage: 2}))
	m.committed, m.frames = true, nil
	m.wrote = fileSize(t, m.logs.Path(m.id))
}

// crash drops the Writer, may cut the file within what the newest append added, and opens it again.
func (m *machine) crash(t *rapid.T) {
	m.w.Crash()
	must(t, m.logs.Close())
	path := m.logs.Path(m.id)
	full := fileSize(t, path)
	cut := full
	if full > m.wrote && m.wrote >= results.PageSize && m.turned(full) == m.turned(m.wrote) {
		cut = rapid.Int64Range(m.wrote, full).Draw(t, "cut")
		must(t, os.Truncate(path, cut))
	}
	m.logs = results.New(m.dir)
	w, err := m.logs.Reopen(m.id, results.Options{Keep: m.keep})
	must(t, err)
	m.w = w
	out, errs := w.Sums()
	n := int(out.Bytes + errs.Bytes)
	if n > len(m.bytes) || cut == full && n != len(m.bytes) {
		t.Fatalf("%d bytes after reopening, %d were written, file cut from %d to %d", n, len(m.bytes), full, cut)
	}
	m.wrote = fileSize(t, path)
	if mark, ok := w.Committed(); ok != m.committed || ok && mark.Seq > m.seed {
		t.Fatalf("mark %+v, %t; committed %t, seq at most %d", mark, ok, m.committed, m.seed)
	}
	if !m.committed {
		m.bytes, m.kinds = m.bytes[:n], m.kinds[:n]
		return
	}
	for _, f := range m.frames {
		must(t, w.Append(f.kind, f.at, f.p))
	}
}

func (m *machine) turned(size int64) bool { return size >= m.keep }

func (m *machine) detach(t *rapid.T) {
	must(t, m.w.Detach())
	w, err := m.logs.Reopen(m.id, results.Options{Keep: m.keep})
	must(t, err)
	m.w = w
	if m.committed {
		m.commitHere(t)
	}
}

// commitHere repeats what is unacked and commits.
func (m *machine) commitHere(t *rapid.T) {
	for _, f := range m.frames {
		must(t, m.w.Append(f.kind, f.at, f.p))
	}
	m.commit(t)
}

func (m *machine) verify(t *rapid.T) {
	out, errs := m.w.Sums()
	for kind, sum := range map[uint8]results.Sum{results.KindStdout: out, results.KindStderr: errs} {
		want := m.of(kind)
		if sum.Bytes != uint64(len(want)) || sum.CRC32C != crc32.Checksum(want, crc32.MakeTable(crc32.Castagnoli)) {
			t.Fatalf("kind %d: sum %+v does not fit the %d bytes written", kind, sum, len(want))
		}
	}
	want := m.of(results.KindStdout)
	if tail := m.w.Tail(); !bytes.HasSuffix(want, tail) {
		t.Fatalf("tail of %d bytes is not the end of stdout", len(tail))
	}
	from := uint64(rapid.IntRange(0, len(m.bytes)+10).Draw(t, "from"))
	m.checkShape(t, m.check(t, m.logs, m.id, from), from)
	if size := fileSize(t, m.logs.Path(m.id)); size > m.keep {
		t.Fatalf("the file has %d bytes, %d are allowed", size, m.keep)
	}
}

// checkShape checks what came besides the bytes: one gap at most, and the reading came to the end.
func (m *machine) checkShape(t *rapid.T, got reading, from uint64) {
	if got.gaps > 1 || got.next != max(from, uint64(len(m.bytes))) {
		t.Fatalf("%d gaps, read to %d of %d", got.gaps, got.next, len(m.bytes))
	}
}

func (m *machine) finish(t *rapid.T) {
	kept := m.check(t, m.logs, m.id, 0).kept
	info, err := m.w.Close(context.Background())
	must(t, err)
	sum := sha256.Sum256(kept)
	if info.SHA256 != hex.EncodeToString(sum[:]) || info.Kept != int64(len(kept)) || info.Bytes != int64(len(m.bytes)) ||
		info.Truncated != (len(kept) < len(m.bytes)) {
		t.Fatalf("%+v does not fit %d kept of %d written", info, len(kept), len(m.bytes))
	}
	got := m.check(t, m.logs, m.id, 0)
	if !got.ended || !bytes.Equal(got.kept, kept) {
		t.Fatalf("other bytes after Close")
	}
	must(t, m.logs.Close())
	m.logs = results.New(m.dir)
	again, err := m.logs.Reopen(m.id, results.Options{Keep: m.keep})
	must(t, err)
	if second, err := again.Close(context.Background()); err != nil || second != info {
		t.Fatalf("closed again: %+v, %v; want %+v", second, err, info)
	}
	if got := m.check(t, m.logs, m.id, 0); !got.ended || !bytes.Equal(got.kept, kept) {
		t.Fatalf("other bytes after a restart")
	}
}

func TestStreamGivesBackWhatWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "results")
		must(t, err)
		defer os.RemoveAll(dir)
		m := &machine{dir: dir, keep: rapid.Int64Range(results.MinKeep, 4*results.MinKeep).Draw(t, "keep"), now: 1e18}
		m.open(t)
		defer func() { must(t, m.logs.Close()) }()
		t.Repeat(map[string]func(*rapid.T){
			"append": m.appendSome,
			"more":   m.appendSome,
			"crash":  m.crash,
			"detach": m.detach,
			"commit": m.commit,
			"":       m.verify,
		})
		m.finish(t)
	})
}
