package client

import "time"

// SetWaitStep shortens the exchanges of WaitResult.
func (c *Client) SetWaitStep(d time.Duration) { c.waitStep = d }
