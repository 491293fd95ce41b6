package job_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"sandboxd/internal/job"
)

func TestAJobActsForTheOwnerOfItsTree(t *testing.T) {
	got := job.JobCaller(job.Job{ID: "j", Root: "r", Parent: "p", Owner: "uid:0", OwnerUID: 0, OwnerGID: 7, Groups: []uint32{4, 5}})
	want := job.Caller{Principal: "job:j", UID: 0, GID: 7, Groups: []uint32{4, 5}, Job: "j"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
