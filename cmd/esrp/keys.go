package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/esrp/service"
)

// natsFlags are the flags for connecting to a NATS cluster.
type natsFlags struct{ url, nkey, ca string }

func (f *natsFlags) register(c *cobra.Command, urlUsage string) {
	flags := c.Flags()
	flags.StringVar(&f.url, "nats", "", urlUsage)
	flags.StringVar(&f.nkey, "nkey", "", "`FILE` with the nkey for that NATS (esrp keys makes it)")
	flags.StringVar(&f.ca, "tls-ca", "", "`FILE` with the certificates to verify the NATS servers' certificates with")
}

func (f *natsFlags) access(role string) service.Access {
	return service.Access{URL: f.url, KeyFile: f.nkey, CA: f.ca, Role: role}
}

func keysCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "keys DIR",
		Short: "Make keys for services and workers that share a NATS",
		Long: `Makes server.nk and worker.nk, for --nkey of serve and worker, and accounts.conf for the
nats-servers. With it, they let workers only take jobs and add results.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			config, err := service.WriteKeys(args[0])
			if err != nil {
				return step("Failed to make keys", err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: include it in the configuration of the nats-servers\n", config)
			return nil
		},
	}
}
