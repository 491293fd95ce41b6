package job

import (
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// ID names a job for ever and everywhere: a UUIDv7 in its canonical lower-case text form (36 bytes). Being
// ordered by time of birth it also serves as the age in queues.
type ID string

// MinPrefix is the shortest prefix of an ID that is accepted in its place, in hex digits.
const MinPrefix = 4

// NewID makes a fresh ID.
func NewID() (ID, error) {
	u, err := uuid.NewV7()
	if err != nil {
		return "", fmt.Errorf("making a job id: %w", err)
	}
	return ID(u.String()), nil
}

// ParseID accepts a whole ID only; Prefix accepts the beginning of one.
func ParseID(s string) (ID, error) {
	if len(s) == 36 && isPrefix(s) {
		if _, err := uuid.Parse(s); err == nil {
			return ID(s), nil
		}
	}
	return "", Errorf(CodeInvalid, "id", "%.64q is not a job id (36 characters such as 0191e0c2-…); see 'sbx ps'", s)
}

// Prefix checks text that stands for a job id: a whole one or an unambiguous beginning.
func Prefix(s string) (string, error) {
	p := strings.ToLower(s)
	if len(p) < MinPrefix || len(p) > 36 || !isPrefix(p) {
		return "", Errorf(CodeInvalid, "id", "%.64q is not a job id or the beginning of one (at least %d hex digits); see 'sbx ps'", s, MinPrefix)
	}
	return p, nil
}

func isPrefix(s string) bool {
	for i, c := range []byte(s) {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		hex := c >= '0' && c <= '9' || c >= 'a' && c <= 'f'
		if dash != (c == '-') || !dash && !hex {
			return false
		}
	}
	return true
}

func (id ID) String() string { return string(id) }
