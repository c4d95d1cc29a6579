// Package plural counts things for people.
package plural

import "fmt"

// Of is "1 GPU", "2 GPUs".
func Of(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
