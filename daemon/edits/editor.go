// Package edits changes the files of the configuration for the user: each value in the file that it comes from.
//
// A change is in effect when the function returns, and a workspace's file that the user
// trusted stays trusted. Changes that others made to the file since are not trusted by that.
//
// The entry point is New.
package edits

import (
	"errors"

	"github.com/seed-dec29ce4/eca/config"
)

// Trust keeps a file trusted over an edit.
type Trust interface {
	// MayRenew says whether an edit of ours keeps a file trusted.
	MayRenew(file string) bool
	// Renew trusts a file that was just edited.
	Renew(file string) error
}

// Editor changes files of the configuration.
type Editor struct {
	config func() *config.Loaded
	reload func() bool
	trust  Trust
}

// New returns an editor of the files of a configuration. reload puts what was changed into
// effect.
func New(current func() *config.Loaded, reload func() bool, t Trust) *Editor {
	return &Editor{current, reload, t}
}

// Drop removes what is at a path of keys from every file that has it, the highest layer
// first, and the section that it was in if nothing else is there.
func (e *Editor) Drop(path ...string) error {
	for last := ""; ; {
		origin, ok := e.config().Origin(path...)
		if !ok || origin.Source == last || origin.Source != e.config().Owner(path...) {
			return nil
		}
		last = origin.Source
		if err := e.Edit(last, config.Delete(path...), config.DeleteEmpty(path[0])); err != nil {
			return err
		}
	}
}

// Edit changes a configuration file and puts it into effect.
func (e *Editor) Edit(file string, changes ...config.Change) error {
	switch {
	case e.config().PureConfig:
		return errors.New("the configuration comes from the editor alone (pureConfig); no file is in effect")
	case file == "":
		return errors.New("there is no configuration file to change")
	}
	renew := e.trust.MayRenew(file)
	if err := config.EditFile(file, changes...); err != nil {
		return err
	}
	e.reload()
	if renew {
		return e.trust.Renew(file)
	}
	return nil
}
