package ledgertest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/job"
	"sandboxd/internal/store"
)

// events reads all events of a viewer, in small pages.
func events(t *testing.T, l store.Reader, v store.Viewer) (out []store.Event) {
	t.Helper()
	after := int64(0)
	for {
		page, err := l.Events(t.Context(), v, after, 300)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			return out
		}
		out, after = append(out, page...), page[len(page)-1].Seq
	}
}

func eventsWithoutGaps(t *testing.T, l store.Ledger) {
	const owners, each = 4, 30
	parallel(t, owners*each, func(i int) {
		j := NewJob(t, uint32(1000+i%owners))
		a := Admission(j)
		a.MaxQueuedPerUID = 1 + i%each // some are refused, and leave no gap
		if _, _, err := l.Admit(t.Context(), a); err == nil && i%2 == 0 {
			mustCancel(t, l, j, store.Cancel{Reason: job.ReasonByCaller, NowMS: Start})
		}
	})
	total := 0
	for i := range owners {
		v := store.Viewer{Principal: NewJob(t, uint32(1000+i)).Owner}
		own := events(t, l, v)
		for n, e := range own {
			if e.Seq != int64(n+1) || e.Owner != v.Principal {
				t.Fatalf("event %d of %s has number %d and owner %s", n+1, v.Principal, e.Seq, e.Owner)
			}
		}
		total += len(own)
	}
	all := events(t, l, store.Viewer{All: true})
	for n, e := range all {
		if e.Seq != int64(n+1) {
			t.Fatalf("event %d of all has number %d", n+1, e.Seq)
		}
	}
	if len(all) != total || total == 0 {
		t.Errorf("%d events in all, %d of the owners", len(all), total)
	}
	if got := events(t, l, store.Viewer{}); len(got) != 0 {
		t.Errorf("%d events for nobody", len(got))
	}
}

func eventsOfALife(t *testing.T, l store.Ledger) {
	j := NewJob(t, 1000)
	j.Spec.Name = "n"
	Admit(t, l, j)
	Bring(t, l, j, job.Done)
	event := func(seq, time int64, kind string, payload map[string]string) store.Event {
		return store.Event{Seq: seq, Owner: j.Owner, TimeMS: time, Job: j.ID, Root: j.ID, Type: kind, Payload: payload}
	}
	want := []store.Event{
		event(1, Start, "queued", map[string]string{"profile": "default", "name": "n"}),
		event(2, Start+1, "starting", map[string]string{"attempt": "1"}),
		event(3, Start+2, "running", nil),
		event(4, Start+2, "finishing", nil),
		event(5, Start+4, "done", map[string]string{"status": "success", "exit_code": "0"}),
	}
	if diff := cmp.Diff(want, events(t, l, store.Viewer{Principal: j.Owner})); diff != "" {
		t.Error(diff)
	}
	got, err := l.Events(t.Context(), store.Viewer{Principal: j.Owner}, 2, 1)
	if err != nil || len(got) != 1 || got[0].Seq != 3 {
		t.Errorf("one event after 2: %+v, %v", got, err)
	}
}

func toldBeside(t *testing.T, l store.Ledger) {
	j := Admit(t, l, NewJob(t, 1000))
	say := map[string]string{"percent": "75"}
	if err := l.Tell(t.Context(), j.ID, "budget_warning", say, Start+7); err != nil {
		t.Fatal(err)
	}
	got := events(t, l, store.Viewer{Job: j.ID})
	want := store.Event{Seq: 2, Owner: j.Owner, TimeMS: Start + 7, Job: j.ID, Root: j.ID, Type: "budget_warning", Payload: say}
	if len(got) != 2 || !cmp.Equal(got[1], want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if err := l.Tell(t.Context(), NewJob(t, 1).ID, "budget_warning", nil, Start); job.CodeOf(err) != job.CodeNotFound {
		t.Errorf("of an unknown job: %v", err)
	}
	if l.Tell(t.Context(), j.ID, "", nil, Start) == nil || l.Tell(t.Context(), j.ID, "x", nil, 0) == nil {
		t.Error("told without a kind or a time")
	}
}
