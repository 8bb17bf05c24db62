record Point(int x, int y) {
  static int made;
  Point {
    if (x < 0) { throw new IllegalArgumentException(); }
  }
  int sum() { return x + y; }
}
record Pair<T>(T first) implements Shape {
  @Checked
  public Pair {
    check(first);
  }
  Pair(int a, int b) { this(null); }
}
class Plain {
  static { made = 1; }
  { made = 2; }
  Plain() {}
}
