package results

import "sync"

// everything is a position behind all others.
const everything = 1 << 62

// classes are the sizes of buffers, so that a thousand readers of little do not hold a thousand of the largest.
var classes = [...]int{4 << 10, 64 << 10, MaxPayload + HeaderSize}

// bufferPool lends buffers of the classes to readers.
type bufferPool struct{ pools [len(classes)]sync.Pool }

// get returns a buffer of at least n bytes, or the largest.
func (p *bufferPool) get(n int64) *[]byte {
	i := 0
	for i < len(classes)-1 && int64(classes[i]) < n {
		i++
	}
	if b, ok := p.pools[i].Get().(*[]byte); ok {
		return b
	}
	b := make([]byte, classes[i])
	return &b
}

func (p *bufferPool) put(b *[]byte) {
	for i, size := range classes {
		if len(*b) == size {
			p.pools[i].Put(b)
		}
	}
}
