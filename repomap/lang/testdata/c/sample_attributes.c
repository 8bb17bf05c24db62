struct __attribute__((packed)) header { int a; };
union __attribute__((aligned(8))) cell { int a; };
enum __attribute__((packed)) state { ON };
struct after { int a; } __attribute__((packed));
struct alignas(8) wide { int x; };
struct [[deprecated]] old { int z; };
struct __declspec(align(8)) exported { int z; };
typedef struct { int a; } plain_t;
typedef struct __attribute__((packed)) { int z; } packed_t;
typedef union { int a; } cell_t, *cell_ptr;
static struct { int x; } nameless;
struct __attribute__((packed)) header make_header(void) { }
int last(void) { return 0; }
