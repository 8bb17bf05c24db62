#include <vector>
namespace a::b {
namespace {
int anonymous() { return 1; }
}
template <typename T, class U = std::vector<T>>
class EXPORT Shape final : public Base<T>, private Other {
public:
  explicit Shape(int x) : x_{x}, y_(x) { run(); }
  virtual ~Shape() = default;
  virtual double area() const = 0;
  static Shape *make(const std::string &name = "x{");
  T operator+(const T &o) const { return o; }
  bool operator==(const Shape &) const;
  void operator()(int a) {}
  enum class Kind : int { A, B };
  struct Inner { void deep(); };
  std::vector<int> items;
  int count = 0;
private:
  friend class Foo;
};
template <> struct Special<int> { };
double Shape<int>::area() const { return 1.0; }
Shape::Shape() : x_(0) {}
auto lambda = [](int x) { return x; };
auto trailing(int x) -> std::vector<int> { return {}; }
const char *raw = R"x(class No { void f(); )")x";
using Ints = std::vector<int>;
using std::move;
typedef int Number;
extern "C" {
int exported(void);
}
union Both { int a; };
constexpr int kMax = 1'000;
std::map<int, std::string> lookup(int a, int b = f(2)) noexcept { return {}; }
}  // namespace
#define CHECK(x) do { if (!(x)) fail(); } while (0)
TEST(Suite, Name) { int a; }
int main() { return 0; }
