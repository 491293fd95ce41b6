package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// message is one of the JSON messages a pull or a load consists of.
type message struct {
	ID             string `json:"id"`
	Status         string `json:"status"`
	Stream         string `json:"stream"`
	Error          string `json:"error"`
	ProgressDetail struct {
		Current, Total int64
	} `json:"progressDetail"`
}

// follow reads messages to the end, which is when the work is done. A failure is a message too, for the engine has
// answered 200 by then.
func follow(ctx context.Context, body io.ReadCloser, progress func(string)) error {
	defer body.Close()
	for messages := json.NewDecoder(body); ; { // the gate bounds each message
		var m message
		if err := messages.Decode(&m); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("the engine's messages cannot be read: %w", err)
		}
		if m.Error != "" {
			exchangeOf(ctx).open.Store(false) // the engine has said how it ended
			return errors.New(m.Error)
		}
		if line := m.line(); progress != nil && line != "" {
			progress(line)
		}
	}
}

func (m message) line() string {
	text := oneLine(strings.Join([]string{m.ID, m.Status, m.Stream}, " "))
	if m.ProgressDetail.Total > 0 {
		text += fmt.Sprintf(" %d/%d bytes", m.ProgressDetail.Current, m.ProgressDetail.Total)
	}
	return text
}
