package budget_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"sandboxd/internal/budget"
)

func link(above *budget.Chain, limit int64) *budget.Chain {
	return budget.NewChain(above, &budget.Pot{Limit: limit}, nil)
}

func spent(c *budget.Chain) int64 { p, _ := c.Pot(); return p.Spent }

func TestDebitIsWhatTheTightestLinkHas(t *testing.T) {
	root := link(nil, 100)
	child := link(budget.NewChain(root, nil, nil), 60) // the one between has no limit of its own
	for _, c := range []struct{ n, want int64 }{{50, 50}, {50, 10}, {1, 0}, {0, 0}, {-5, 0}} {
		if got := child.Debit(c.n); got != c.want {
			t.Errorf("debit %d: %d, want %d", c.n, got, c.want)
		}
	}
	sibling := link(root, 1000)
	if got := sibling.Debit(top); got != 40 || spent(root) != 100 || spent(sibling) != 40 {
		t.Errorf("the sibling got %d, the root spent %d", got, spent(root))
	}
	var missing *budget.Chain
	if missing.Debit(1) != 0 {
		t.Error("a missing chain allows bytes")
	}
}

func TestChargeGoesOverAndDebitStops(t *testing.T) {
	root := link(nil, 10)
	child := link(root, 10)
	child.Charge(25)
	if child.Debit(1) != 0 || spent(root) != 25 {
		t.Errorf("%d spent", spent(root))
	}
}

func TestATightenedParentBindsTheNextByte(t *testing.T) {
	root := budget.NewChain(nil, nil, nil)
	child := link(root, 100)
	child.Debit(10)
	root.Tighten(10)
	root.Tighten(50) // never widens
	if got := child.Debit(1); got != 0 {
		t.Errorf("%d passes", got)
	}
}

// Eight siblings with two connections each draw on one tree budget: together they get it exactly.
func TestSiblingsShareATreeToTheByte(t *testing.T) {
	const limit, siblings, connections = 10<<20 + 7, 8, 2
	var mu sync.Mutex
	var warned []int
	root := budget.NewChain(nil, &budget.Pot{Limit: limit}, func(percent int) {
		mu.Lock()
		defer mu.Unlock()
		warned = append(warned, percent)
	})
	var total atomic.Int64
	var wg sync.WaitGroup
	for s := range siblings {
		child := link(link(root, limit-int64(s)), limit/2)
		for range connections {
			wg.Go(func() {
				for n := int64(1); ; n = n%4096 + 97 {
					got := child.Debit(n)
					if total.Add(got); got < n {
						return
					}
				}
			})
		}
	}
	wg.Wait()
	if total.Load() != limit || spent(root) != limit {
		t.Errorf("%d forwarded, %d debited of %d", total.Load(), spent(root), limit)
	}
	slices.Sort(warned)
	if !slices.Equal(warned, []int{50, 75, 90}) {
		t.Errorf("warned at %v", warned)
	}
}

// A warning may look at the whole chain: no lock is held.
func TestAWarningMayAskTheChain(t *testing.T) {
	var root, child *budget.Chain
	var seen []int64
	root = budget.NewChain(nil, &budget.Pot{Limit: 10}, func(int) { seen = append(seen, spent(child)) })
	child = budget.NewChain(root, &budget.Pot{Limit: 10}, func(int) { seen = append(seen, spent(root)) })
	child.Debit(9)
	if len(seen) != 6 {
		t.Errorf("%v", seen)
	}
}

func TestAnyOrderOfDebitsIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type node struct {
			chain  *budget.Chain
			up     []int
			limit  int64 // −1: none
			debits int64
		}
		var nodes []*node
		for i := range rapid.IntRange(1, 8).Draw(t, "links") {
			n := &node{limit: rapid.Int64Range(-1, 300).Draw(t, "limit"), up: []int{i}}
			var above *budget.Chain
			if i > 0 && rapid.IntRange(0, 4).Draw(t, "top") > 0 {
				p := nodes[rapid.IntRange(0, i-1).Draw(t, "above")]
				above, n.up = p.chain, append(slices.Clone(p.up), i)
			}
			if n.limit < 0 {
				n.chain = budget.NewChain(above, nil, nil)
			} else {
				n.chain = link(above, n.limit)
			}
			nodes = append(nodes, n)
		}
		for range rapid.IntRange(0, 30).Draw(t, "debits") {
			n := rapid.SampledFrom(nodes).Draw(t, "at")
			ask := rapid.Int64Range(-1, 200).Draw(t, "n")
			want := max(ask, 0)
			for _, i := range n.up {
				if nodes[i].limit >= 0 {
					want = min(want, nodes[i].limit-nodes[i].debits)
				}
			}
			if got := n.chain.Debit(ask); got != want {
				t.Fatalf("debit %d: %d, want %d", ask, got, want)
			}
			for _, i := range n.up {
				nodes[i].debits += want
			}
		}
		for i, n := range nodes {
			if spent(n.chain) != n.debits {
				t.Fatalf("link %d spent %d, want %d", i, spent(n.chain), n.debits)
			}
		}
	})
}

func BenchmarkDebit(b *testing.B) {
	for _, depth := range []int{1, 4, 18} {
		b.Run(fmt.Sprint(depth), func(b *testing.B) {
			var c *budget.Chain
			for range depth {
				c = link(c, top)
			}
			for b.Loop() {
				c.Debit(1)
			}
		})
	}
}
