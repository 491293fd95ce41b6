package engine

import (
	"context"
	"net/http"
	"sync/atomic"
)

// exchange notes how far the requests of one call came. It travels in the call's context.
type exchange struct {
	began  atomic.Bool           // some request that changes things was tried
	change atomic.Bool           // the last request is such a one
	open   atomic.Bool           // and went out
	status atomic.Int32          // the answer to the last request; 0 for none
	lost   atomic.Pointer[error] // what the connection failed with instead of an answer
	broken atomic.Bool           // the connection broke while an answer was read
}

type exchangeKey struct{}

func withExchange(ctx context.Context) (context.Context, *exchange) {
	x := &exchange{}
	return context.WithValue(ctx, exchangeKey{}, x), x
}

func exchangeOf(ctx context.Context) *exchange {
	if x, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		return x
	}
	return &exchange{}
}

func (x *exchange) begin(method string) {
	change := method != http.MethodGet && method != http.MethodHead
	x.change.Store(change)
	x.open.Store(false)
	x.status.Store(0)
	x.lost.Store(nil)
	if change {
		x.began.Store(true)
	}
}

func (x *exchange) sent() { x.open.Store(x.change.Load()) }

// unsure tells whether a failed call may have changed something: the request was sent, and the engine did not refuse it.
func (x *exchange) unsure() bool { return x.open.Load() && x.status.Load() < 300 }
