package bounds

import (
	"slices"
	"testing"

	"github.com/seed-dec29ce4/eca/config"
)

// Entries that are not valid hosts or ports are reported and ignored, and the other entries apply.
func TestPortsAndHosts(t *testing.T) {
	cfg := &config.Config{}
	cfg.ToolCall.SandboxPorts = []int{5432, 70000, -1, 3128, 5432}
	cfg.ToolCall.SandboxHosts = []string{"http://bad.example/x"}
	cfg.ToolCall.SandboxNetwork.Allow = []string{"a b", "ok.example"}
	if got := ports(cfg); !slices.Equal(got, []int{5432}) || !hosts(cfg).Contain("ok.example") {
		t.Errorf("ports %v, hosts %v", got, hosts(cfg))
	}
	if got := Problems(&config.Loaded{Config: cfg}); len(got) != 5 {
		t.Errorf("problems: %v", got)
	}
}
