package results

import (
	"errors"
	"fmt"
	"syscall"

	"sandboxd/internal/job"
)

// Causes, for errors.Is. What is returned is a *job.Error around one of them.
var (
	ErrFull    = errors.New("no space left for the stream")     // ENOSPC, EDQUOT: Append may be tried again
	ErrIO      = errors.New("the stream cannot be written")     // any other failure of the disk
	ErrCorrupt = errors.New("the stream's file is damaged")     // or was changed by somebody else
	ErrEnded   = errors.New("the stream has ended")             // Append after Close
	ErrClosed  = errors.New("the streams are closed")           // the daemon is stopping, or the Writer was detached
	ErrRemoved = errors.New("the stream was removed meanwhile") // a reader's stream went away
)

var codes = map[error]job.Code{
	ErrFull: job.CodeInternal, ErrIO: job.CodeInternal, ErrCorrupt: job.CodeInternal,
	ErrEnded: job.CodeConflict, ErrClosed: job.CodeUnavailable, ErrRemoved: job.CodeNotFound,
}

// fault is the error for a cause, with the step that failed and what the system said of it.
func fault(id job.ID, cause error, step string, err error) error {
	wrapped := cause
	if err != nil {
		wrapped = fmt.Errorf("%w: %s: %w", cause, step, err)
	}
	return job.Wrap(codes[cause], wrapped, "output of job %s", id)
}

// diskFault tells a full disk from a broken one.
func diskFault(id job.ID, step string, err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fault(id, ErrFull, step, err)
	}
	return fault(id, ErrIO, step, err)
}

func notFound(id job.ID) error {
	return job.Errorf(job.CodeNotFound, "", "job %s has no recorded output", id)
}
