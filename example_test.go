package hccl_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"

	"hccl.dev/hccl"
)

// onEach runs f for every rank on a goroutine of its own.
func onEach(comms []*hccl.Comm, f func(c *hccl.Comm) error) {
	var wg sync.WaitGroup
	for _, c := range comms {
		wg.Go(func() {
			if err := f(c); err != nil {
				log.Print(err)
			}
		})
	}
	wg.Wait()
}

// Four ranks, as goroutines, add what each has.
func Example() {
	ctx := context.Background()
	comms, err := hccl.InitAll(ctx, 4)
	if err != nil {
		log.Fatal(err)
	}
	onEach(comms, func(c *hccl.Comm) error {
		defer c.Close()
		grad := []float32{1, float32(c.Rank())}
		if err := hccl.AllReduce(ctx, c, grad, grad, hccl.Sum); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Println(grad)
		}
		return nil
	})
	// Output: [4 6]
}

// Ranks that know nothing of each other but an id: here goroutines, else processes that got its text.
func ExampleInit() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	id, err := hccl.NewID()
	if err != nil {
		log.Fatal(err)
	}
	var wg sync.WaitGroup
	for rank := range 3 {
		wg.Go(func() {
			same, err := hccl.ParseID(id.Text())
			if err != nil {
				log.Fatal(err)
			}
			c, err := hccl.Init(ctx, same, rank, 3, hccl.Name("example"))
			if err != nil {
				log.Fatal(err)
			}
			defer c.Close()
			all := make([]int, 3)
			if err := hccl.AllGather(ctx, c, []int{rank * rank}, all); err != nil {
				log.Fatal(err)
			}
			if rank == 2 {
				fmt.Println(all)
			}
		})
	}
	wg.Wait()
	// Output: [0 1 4]
}

// Each rank gives its right neighbour something while it gets something from its left one.
func ExampleGroup() {
	ctx := context.Background()
	comms, err := hccl.InitAll(ctx, 3)
	if err != nil {
		log.Fatal(err)
	}
	got := make([]string, 3)
	onEach(comms, func(c *hccl.Comm) error {
		defer c.Close()
		n := c.Size()
		out, in := []byte{'a' + byte(c.Rank())}, make([]byte, 1)
		err := hccl.Group(ctx, func(g *hccl.Calls) error {
			if err := hccl.Send(ctx, g.On(c), out, (c.Rank()+1)%n); err != nil {
				return err
			}
			return hccl.Recv(ctx, g.On(c), in, (c.Rank()+n-1)%n)
		})
		got[c.Rank()] = string(in)
		return err
	})
	fmt.Println(got)
	// Output: [c a b]
}

// Each rank adds up one layer's gradients while it computes those of the next.
func ExampleStream() {
	ctx := context.Background()
	comms, err := hccl.InitAll(ctx, 2)
	if err != nil {
		log.Fatal(err)
	}
	onEach(comms, func(c *hccl.Comm) error {
		defer c.Close()
		var s hccl.Stream
		layers := make([][]float32, 3)
		for k := range layers {
			layers[k] = []float32{float32(k), 1} // computed here, beside the sum of the layer before
			if err := hccl.AllReduce(ctx, s.On(c), layers[k], layers[k], hccl.Sum); err != nil {
				return err
			}
		}
		if err := s.Synchronize(ctx); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Println(layers)
		}
		return nil
	})
	// Output: [[0 2] [2 2] [4 2]]
}

// A receive that waits while the program goes on, and that a select waits for.
func ExampleRequest() {
	ctx := context.Background()
	comms, err := hccl.InitAll(ctx, 2)
	if err != nil {
		log.Fatal(err)
	}
	onEach(comms, func(c *hccl.Comm) error {
		defer c.Close()
		if c.Rank() == 1 {
			return hccl.SendTagged(ctx, c, []int{42}, 0, 7)
		}
		var r hccl.Request
		var status hccl.Status
		got := make([]int, 10)
		if err := hccl.RecvMessage(ctx, r.On(c), got, hccl.AnySource, hccl.AnyTag, &status); err != nil {
			return err
		}
		select {
		case <-r.Done():
		case <-time.After(time.Minute):
			return c.Abort()
		}
		fmt.Println(got[0], "from", status.Source, "with tag", status.Tag)
		return r.Wait(ctx)
	})
	// Output: 42 from 1 with tag 7
}

// Even and odd ranks get a communicator each.
func ExampleComm_Split() {
	ctx := context.Background()
	comms, err := hccl.InitAll(ctx, 4)
	if err != nil {
		log.Fatal(err)
	}
	sums := make([]int, 4)
	onEach(comms, func(c *hccl.Comm) error {
		defer c.Close()
		half, err := c.Split(ctx, c.Rank()%2, c.Rank())
		if err != nil {
			return err
		}
		defer half.Close()
		return hccl.AllReduce(ctx, half, []int{c.Rank()}, sums[c.Rank():][:1], hccl.Sum)
	})
	fmt.Println(sums)
	// Output: [2 4 2 4]
}

// Each rank scales what it gives: here for a mean that is weighted.
func ExamplePreMulSum() {
	ctx := context.Background()
	comms, err := hccl.InitAll(ctx, 2)
	if err != nil {
		log.Fatal(err)
	}
	weights := []float64{0.25, 0.75}
	onEach(comms, func(c *hccl.Comm) error {
		defer c.Close()
		x := []float64{float64(10 * (1 + c.Rank()))}
		err := hccl.AllReduce(ctx, c, x, x, hccl.PreMulSum(weights[c.Rank()]))
		if c.Rank() == 0 {
			fmt.Println(x[0])
		}
		return err
	})
	// Output: 17.5
}

// An error says what it is to people by its text, to programs by its kind and by the ranks that it is about.
func ExampleError() {
	comms, err := hccl.InitAll(context.Background(), 2)
	if err != nil {
		log.Fatal(err)
	}
	defer comms[0].Close()
	comms[1].Abort()

	err = hccl.Recv(context.Background(), comms[0], make([]int, 1), 1)
	var e *hccl.Error
	if errors.As(err, &e) && errors.Is(err, hccl.ErrRemote) {
		fmt.Println("lost ranks", e.Ranks)
	}
	// Output: lost ranks [1]
}
