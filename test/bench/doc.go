// Package bench measures the real thing against what users have today, both in the same run because timings of a busy
// machine only compare as ratios. `make bench` prints:
//
//	RunCold   `sbx run … true` from process start to exit, beside `docker run --rm` with the same settings
//	RunWarm   the same with containers kept ready, as the daemon does by default
//	Stream    stored output in MB/s, beside docker's default log driver
//	Submit    durable submits through the socket
package bench
