package sandbox_test

import (
	"encoding/json"
	"fmt"
	"testing"
)

func TestFillMakesAProvedSlot(t *testing.T) {
	r := openRoom(t, nil, nil)
	sl := r.fill(t, r.request())
	ev := sl.Evidence()
	text, _ := json.MarshalIndent(ev, "", "  ")
	fmt.Println(string(text))
	command(t, sl, r.posture(), "id; cat /proc/self/status | grep -E '^(Cap|No|Sec)'; cat /proc/self/cgroup; env; nproc; ls -la / /sbx /sbx/slot /home /tmp; touch /x; cat /proc/cmdline; ls -la /proc/self/fd")
	out, ex := follow(t, sl)
	fmt.Println(out, ex)
	fmt.Println(sl.Readings())
}
