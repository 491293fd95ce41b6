package wire

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
)

// Identity is who the two ends of a connection are: one slot of one daemon instance, and the key they share.
type Identity struct {
	Instance string
	Slot     string
	Epoch    uint64 // of the daemon process
	Key      [KeySize]byte
}

// NewKey makes a key for a fresh slot.
func NewKey() (key [KeySize]byte) {
	_, _ = rand.Read(key[:]) // never fails: it ends the process when the kernel has no randomness
	return key
}

// Held is what init still knows when it resumes, sent with its proof.
type Held struct {
	Started  bool   // the start message came; it must not be sent again
	StdinGot uint64 // bytes of stdin received; the daemon goes on from there
	StdinEOF bool   // the end of stdin was received
}

// InitProof is init's answer to a challenge.
type InitProof struct {
	MAC      []byte `json:"mac"`
	Started  bool   `json:"started,omitempty"`
	StdinGot uint64 `json:"stdin_got,omitempty"`
	StdinEOF bool   `json:"stdin_eof,omitempty"`
}

// Challenge answers hello{resume}.
type Challenge struct {
	Epoch uint64 `json:"epoch"`
	Nonce []byte `json:"nonce"`
}

// DaemonProof ends the resume handshake. Init sends every frame after LastSeq again.
type DaemonProof struct {
	MAC     []byte `json:"mac"`
	LastSeq uint64 `json:"last_seq"`
}

// Type and Validate of the handshake messages.

func (InitProof) Type() Type   { return TypeInitProof }
func (Challenge) Type() Type   { return TypeChallenge }
func (DaemonProof) Type() Type { return TypeDaemonProof }

// Validate bounds an init proof.
func (m InitProof) Validate() error {
	b := bounds{of: TypeInitProof}
	b.require(len(m.MAC) == sha256.Size, "mac", "32 bytes")
	b.require(m.StdinGot <= maxNS, "stdin_got", "a number in its range")
	return b.err
}

// Validate bounds a challenge.
func (m Challenge) Validate() error {
	b := bounds{of: TypeChallenge}
	b.require(m.Epoch > 0, "epoch", "more than 0")
	b.require(len(m.Nonce) == NonceSize, "nonce", "32 bytes")
	return b.err
}

// Validate bounds a daemon proof.
func (m DaemonProof) Validate() error {
	b := bounds{of: TypeDaemonProof}
	b.require(len(m.MAC) == sha256.Size, "mac", "32 bytes")
	return b.err
}

// The roles differ, so that a proof played back to its sender proves nothing; so do the frame types.
const (
	roleInit   = "sandboxd init v1"
	roleDaemon = "sandboxd daemon v1"
)

// proof is HMAC-SHA256 over the role, who we are, the daemon's epoch and both nonces, each part with its length.
func (id Identity) proof(role string, epoch uint64, nonceInit, nonceDaemon []byte) []byte {
	mac := hmac.New(sha256.New, id.Key[:])
	part := func(p []byte) {
		mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(p))))
		mac.Write(p)
	}
	part([]byte(role))
	part([]byte(id.Instance))
	part([]byte(id.Slot))
	part(binary.BigEndian.AppendUint64(nil, epoch))
	part(nonceInit)
	part(nonceDaemon)
	return mac.Sum(nil)
}

// AcceptFresh is the daemon's side of a first connection: it takes hello and sends the key. The caller has set a
// deadline on c, has checked the peer's credentials, and closes c on an error.
func AcceptFresh(c *Conn, id Identity) error {
	if _, err := acceptHello(c, id, false); err != nil {
		return err
	}
	w := Welcome{Instance: id.Instance, Slot: id.Slot, Epoch: id.Epoch, Key: id.Key[:]}
	if err := c.Send(w); err != nil {
		return err
	}
	c.Establish(Position{})
	return nil
}

// AcceptResume is the daemon's side of a reconnect: init proves the key first, then the daemon. at is the last place
// that is stored for good; init sends everything after it again. Deadline and closing are the caller's, as are the
// bounds on the number of such connections (4 at once, 1 s each).
func AcceptResume(c *Conn, id Identity, at Position) (Held, error) {
	hello, err := acceptHello(c, id, true)
	if err != nil {
		return Held{}, err
	}
	nonce := newNonce()
	if err := c.Send(Challenge{Epoch: id.Epoch, Nonce: nonce}); err != nil {
		return Held{}, err
	}
	p, err := receive[InitProof](c)
	if err != nil {
		return Held{}, err
	}
	if !hmac.Equal(p.MAC, id.proof(roleInit, id.Epoch, hello.Nonce, nonce)) {
		return Held{}, refuse(ErrProof, TypeInitProof, "not the key of this slot")
	}
	mine := DaemonProof{MAC: id.proof(roleDaemon, id.Epoch, hello.Nonce, nonce), LastSeq: at.Seq}
	if err := c.Send(mine); err != nil {
		return Held{}, err
	}
	c.Establish(at)
	return Held{Started: p.Started, StdinGot: p.StdinGot, StdinEOF: p.StdinEOF}, nil
}

func acceptHello(c *Conn, id Identity, resume bool) (Hello, error) {
	h, err := receive[Hello](c)
	switch {
	case err != nil:
		return h, err
	case h.Product != Product || h.Version != Version:
		return h, refuse(ErrVersion, TypeHello, "want %s version %d, got version %d", Product, Version, h.Version)
	case h.Resume != resume:
		return h, refuse(ErrOrder, TypeHello, "want resume %t", resume)
	case h.Slot != id.Slot && (resume || h.Slot != ""):
		return h, refuse(ErrIdentity, TypeHello, "another slot")
	}
	return h, nil
}

// ConnectFresh is init's side of a first connection. slot may be empty: then init takes the one it is told.
func ConnectFresh(c *Conn, slot string) (Identity, error) {
	hello := Hello{Product: Product, Version: Version, Slot: slot, Nonce: newNonce()}
	if err := c.Send(hello); err != nil {
		return Identity{}, err
	}
	w, err := receive[Welcome](c)
	if err != nil {
		return Identity{}, err
	}
	if slot != "" && w.Slot != slot {
		return Identity{}, refuse(ErrIdentity, TypeWelcome, "another slot")
	}
	c.Establish(Position{})
	return Identity{Instance: w.Instance, Slot: w.Slot, Epoch: w.Epoch, Key: [KeySize]byte(w.Key)}, nil
}

// ConnectResume is init's side of a reconnect. It returns the daemon's epoch, which is never older than id's, and the
// last seq that the daemon holds; whether init can go on from there is init's to check.
func ConnectResume(c *Conn, id Identity, held Held) (epoch, lastSeq uint64, err error) {
	nonce := newNonce()
	if err := c.Send(Hello{Product: Product, Version: Version, Resume: true, Slot: id.Slot, Nonce: nonce}); err != nil {
		return 0, 0, err
	}
	ch, err := receive[Challenge](c)
	if err != nil {
		return 0, 0, err
	}
	if ch.Epoch < id.Epoch {
		return 0, 0, refuse(ErrEpoch, TypeChallenge, "older than the one before")
	}
	mine := InitProof{MAC: id.proof(roleInit, ch.Epoch, nonce, ch.Nonce),
		Started: held.Started, StdinGot: held.StdinGot, StdinEOF: held.StdinEOF}
	if err := c.Send(mine); err != nil {
		return 0, 0, err
	}
	p, err := receive[DaemonProof](c)
	if err != nil {
		return 0, 0, err
	}
	if !hmac.Equal(p.MAC, id.proof(roleDaemon, ch.Epoch, nonce, ch.Nonce)) {
		return 0, 0, refuse(ErrProof, TypeDaemonProof, "not the key of this slot")
	}
	c.Establish(Position{})
	return ch.Epoch, p.LastSeq, nil
}

func receive[M Message](c *Conn) (M, error) {
	f, err := c.Next()
	if err != nil {
		var zero M
		return zero, err
	}
	return Decode[M](f)
}

func newNonce() []byte {
	n := make([]byte, NonceSize)
	_, _ = rand.Read(n)
	return n
}
