package main

import (
	"context"
	"errors"
	"fmt"
	"os/user"
	"strconv"

	"sandboxd/internal/server"
)

// openServer makes the socket and answers on it.
func (d *daemon) openServer(context.Context) (func(context.Context) error, error) {
	gid, err := groupID("socket.group", d.cfg.Socket.Group)
	if err != nil {
		return nil, err
	}
	adminGID, err := groupID("socket.admin_group", d.cfg.Socket.AdminGroup)
	if err != nil {
		return nil, err
	}
	socket, err := server.Listen(server.ListenConfig{Path: d.cfg.Socket.Path, GID: gid, AdminGID: adminGID, Log: d.log})
	if err != nil {
		return nil, err
	}
	d.server = server.New(server.Config{
		Jobs: d.sched, Records: d.db, Accounts: accounts{d.db, d.sched.Denials, d.sched.Used}, Freezer: freezer{d.db}, Waiter: d.sched, Streams: streams{d.logs, d.sched.Done}, Status: d, Log: d.log, Node: nodeName,
		MaxConns: d.cfg.Socket.MaxConns, MaxConnsOne: d.cfg.Socket.MaxConnsUser, LeaseGrace: d.cfg.Jobs.LeaseGrace,
	})
	d.doors.serve(d.server)
	d.work.Add(1)
	go func() {
		defer d.work.Done()
		if err := d.server.Serve(d.ctx, socket); err != nil && d.ctx.Err() == nil && !d.draining.Load() {
			select {
			case d.fatal <- fmt.Errorf("serving %s: %w", d.cfg.Socket.Path, err):
			default:
			}
		}
	}()
	return func(ctx context.Context) error { return errors.Join(d.server.Close(ctx), socket.Close()) }, nil
}

func groupID(key, name string) (*uint32, error) {
	if name == "" {
		return nil, nil
	}
	g, err := user.LookupGroup(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; make it with 'groupadd --system %s', or leave the key out", key, err, name)
	}
	n, err := strconv.ParseUint(g.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("%s: group %s has the odd id %q", key, name, g.Gid)
	}
	gid := uint32(n)
	return &gid, nil
}
