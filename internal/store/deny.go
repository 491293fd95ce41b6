package store

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"

	"sandboxd/internal/job"
)

// Bounds of what is told of denials; the rest is only counted, so that a job cannot fill the record with its requests.
const (
	MaxDeniedPerSecond = 20   // events of a tree in one second
	MaxDeniedTold      = 1000 // events of a tree in all
	maxDenialText      = 512  // bytes of a field's name and of the detail
)

// Denial is a refused request of a job.
type Denial struct {
	Parent job.ID // who asked
	Code   job.Code
	Field  string
	Detail string // one line; cut to 512 bytes
	NowMS  int64
}

// Deny implements Trees.
func (s *SQLite) Deny(ctx context.Context, d Denial) (total int, err error) {
	if d.Parent == "" || d.Code == "" || d.NowMS <= 0 {
		return 0, errors.New("store: deny: parent, code or time is missing")
	}
	err = s.do(ctx, "deny", func(t *tx) error {
		st, err := t.standing(d.Parent)
		if errors.Is(err, sql.ErrNoRows) {
			return notFound(string(d.Parent))
		}
		if err != nil {
			return err
		}
		var told bool
		if total, told, err = t.countDenial(st.root, d.NowMS/1000); err != nil || !told {
			return err
		}
		return t.tell(st, d.NowMS, "denied", payload("code", string(d.Code), "field", cut(d.Field), "detail", cut(d.Detail), "total", strconv.Itoa(total)))
	})
	if err != nil {
		return 0, err
	}
	return total, nil
}

// countDenial counts one more denial of a tree and reports whether it is to be told.
func (t *tx) countDenial(root job.ID, second int64) (total int, told bool, err error) {
	var before, inSecond int
	err = t.row(`UPDATE trees SET denied = denied + 1, denied_second = $2,
 denied_in_second = CASE WHEN denied_second = $2 THEN denied_in_second + 1 ELSE 1 END
 WHERE root = $1 RETURNING denied, denied_told, denied_in_second`, []any{root, second}, &total, &before, &inSecond)
	if err != nil || before >= MaxDeniedTold || inSecond > MaxDeniedPerSecond {
		return total, false, err
	}
	_, err = t.exec(`UPDATE trees SET denied_told = denied_told + 1 WHERE root = $1`, root)
	return total, true, err
}

// cut bounds the words of a denial, which repeat what a job sent.
func cut(s string) string {
	if len(s) <= maxDenialText {
		return s
	}
	return strings.ToValidUTF8(s[:maxDenialText], "") + "…"
}
