package wire

import "fmt"

// Reason is why bytes of the peer were refused: a closed list of stable words, usable with errors.Is.
type Reason string

// The reasons. Each ends the connection.
const (
	ErrLength    Reason = "bad_length"     // longer than the type allows, or empty where it must not be
	ErrType      Reason = "bad_type"       // not a type of this protocol
	ErrDirection Reason = "bad_direction"  // a type only the other side may send
	ErrStream    Reason = "bad_stream"     // output of neither stdout nor stderr, or a stream on another type
	ErrFlags     Reason = "bad_flags"      // an unknown flag, or More where it is not allowed
	ErrSequence  Reason = "bad_sequence"   // a number that goes back, skips, or should not be there
	ErrTime      Reason = "bad_time"       // negative
	ErrOrder     Reason = "bad_order"      // a type that may not come at this point
	ErrPayload   Reason = "bad_payload"    // not strict JSON of the message
	ErrValue     Reason = "bad_value"      // a field out of its bounds
	ErrTruncated Reason = "truncated"      // the connection ended inside a frame or a message
	ErrProof     Reason = "bad_proof"      // the peer does not hold the key of this slot
	ErrVersion   Reason = "bad_version"    // another product, or a version we do not speak
	ErrIdentity  Reason = "bad_identity"   // another slot or instance
	ErrEpoch     Reason = "bad_epoch"      // a daemon older than one already seen
	ErrResume    Reason = "bad_resume"     // the daemon asks for frames that init does not hold
	ErrCredit    Reason = "credit_overrun" // more stdin than the window allows
)

// Error makes a Reason an error.
func (r Reason) Error() string { return string(r) }

// FrameError is a refusal with the place where it happened. It never contains payload bytes.
type FrameError struct {
	Reason Reason
	Type   Type
	Detail string
}

// Error is one line: reason, type, what was wrong.
func (e *FrameError) Error() string {
	return fmt.Sprintf("wire: %s: %s: %s", e.Type, e.Reason, e.Detail)
}

// Unwrap makes errors.Is(err, ErrLength) work.
func (e *FrameError) Unwrap() error { return e.Reason }

func refuse(r Reason, t Type, format string, args ...any) error {
	return &FrameError{Reason: r, Type: t, Detail: fmt.Sprintf(format, args...)}
}
