// What is defined outside of what it belongs to, and names of operators.
namespace shop {

class Block::Iter : public Iterator {
 public:
  void Next() override;
  explicit operator bool() const { return valid_; }
  static void* operator new(size_t n) { return ::operator new(n); }
};

struct Table::Rep {
  int size;
};

}  // namespace shop
