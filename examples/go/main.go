// Pi, by the ranks of a communicator: each integrates a part of 4/(1+x²) from 0 to 1, and one all-reduce adds the parts.
//
//	go run ./examples/go -n 4
//
// The program starts itself once for each rank and hands the id over in the environment, as a launcher would.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"

	"hccl.dev/hccl"
)

// What a rank finds in its environment.
const (
	idVariable   = "PI_ID"
	rankVariable = "PI_RANK"
)

func main() {
	n := flag.Int("n", 4, "number of ranks")
	steps := flag.Int("steps", 1_000_000, "steps of the integration")
	limit := flag.Duration("limit", time.Minute, "how long ranks wait for each other")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), *limit)
	defer cancel()
	var err error
	if os.Getenv(idVariable) == "" {
		err = launch(ctx, *n)
	} else {
		err = rank(ctx, *n, *steps)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pi:", err)
		os.Exit(1)
	}
}

// launch starts n ranks and waits for them. This process makes the id, and answers those who meet under it.
func launch(ctx context.Context, n int) error {
	id, err := hccl.NewID()
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ranks := make([]*exec.Cmd, n)
	for r := range ranks {
		ranks[r] = exec.CommandContext(ctx, self, os.Args[1:]...)
		ranks[r].Env = append(os.Environ(), idVariable+"="+id.Text(), rankVariable+"="+strconv.Itoa(r))
		ranks[r].Stdout, ranks[r].Stderr = os.Stdout, os.Stderr
		if err := ranks[r].Start(); err != nil {
			return err
		}
	}
	for r, cmd := range ranks {
		if e := cmd.Wait(); e != nil {
			err = errors.Join(err, fmt.Errorf("rank %d: %w", r, e))
		}
	}
	return err
}

// rank is what one of the processes does.
func rank(ctx context.Context, n, steps int) error {
	r, err := strconv.Atoi(os.Getenv(rankVariable))
	if err != nil {
		return err
	}
	id, err := hccl.ParseID(os.Getenv(idVariable))
	if err != nil {
		return err
	}
	c, err := hccl.Init(ctx, id, r, n)
	if err != nil {
		return err
	}
	defer c.Close()
	area := []float64{integrate(r, n, steps)}
	if err := hccl.AllReduce(ctx, c, area, area, hccl.Sum); err != nil {
		return err
	}
	if r == 0 {
		fmt.Printf("pi is about %.9f, say %d ranks\n", area[0], n)
	}
	return nil
}

// integrate is rank r's part: every n-th step.
func integrate(r, n, steps int) (area float64) {
	for k := r; k < steps; k += n {
		x := (float64(k) + 0.5) / float64(steps)
		area += 4 / (1 + x*x) / float64(steps)
	}
	return area
}
