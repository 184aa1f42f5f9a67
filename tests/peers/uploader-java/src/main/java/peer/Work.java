// SPDX-License-Identifier: Apache-2.0
package peer;

/** Works for as many seconds as it is told; Pyroscope's agent, beside it, uploads what it saw. */
public final class Work {
    private static long sum;

    private Work() {
    }

    public static void main(String[] arguments) {
        long end = System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000_000L;
        while (System.nanoTime() < end) {
            for (int i = 0; i < 1_000_000; i++) {
                sum += i;
            }
        }
        System.out.println(sum > 0 ? "done" : "idle");
    }
}
