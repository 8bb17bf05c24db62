protocol Writer {
    mutating func write(_ buffer: Buffer) async throws
    mutating func write(contentsOf buffers: [Buffer]) async throws
    consuming func finish() async throws
}

struct Media: Equatable {
    static func == (lhs: Media, rhs: Media) -> Bool {
        lhs.type == rhs.type
    }
    static func <<T>(lhs: T, rhs: T) -> Bool { false }
    func after() {}
}

prefix func ! <T>(v: Validator<T>) -> Validator<T> { v }
