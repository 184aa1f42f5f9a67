// SPDX-License-Identifier: Apache-2.0
package peer;

/** What async-profiler looks at: a hot method, and one that is called less often. */
public final class Busy {
    private static double total;

    private static void hot(int rounds) {
        for (int i = 0; i < rounds; i++) {
            total += Math.sqrt(i);
        }
    }

    private static void warm(int rounds) {
        for (int i = 0; i < rounds; i++) {
            total += Math.cbrt(i);
        }
    }

    /** Works for as many milliseconds as the argument says. */
    public static void main(String[] arguments) {
        long until = System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000;
        while (System.nanoTime() < until) {
            hot(100_000);
            warm(10_000);
        }
        System.out.println(total > 0 ? "done" : "idle");
    }
}
