"""Programs of two parts whose work is known, as IR text: alone, and together under two roots or in one loop."""


class Program:
    """Operations are numbered as they are added. Loops: (dimension, size) from the outside in."""

    def __init__(self):
        self.dims, self.nodes, self.inputs, self.outputs = [], [], [], []

    def dim(self, name):
        self.dims.append(name)
        return len(self.dims) - 1

    def node(self, op, inputs, dims, loops=(), priority=0):
        def numbers(values):
            return "".join(f"{value}," for value in values)
        order = numbers(f"{dim};{size};0" for dim, size in loops)
        self.nodes.append(f"n:{op}:{numbers(inputs)}:{numbers(dims)}:::{priority}:{order}::{',' * len(loops)}::")
        return len(self.nodes) - 1

    def read(self, *dims):
        self.inputs.append(self.node(2, [], dims))
        return self.inputs[-1]

    def write(self, value, dims, loops, priority=0):
        self.outputs.append(self.node(1, [value], dims, loops, priority))

    def text(self):
        lines = [f"v:{name}" for name in self.dims] + self.nodes
        lines += [f"i:{''.join(f'{i},' for i in self.inputs)}", f"o:{''.join(f'{o},' for o in self.outputs)}"]
        return "\n".join(lines) + "\n"


def add_product(program, name, rows, columns, depth, priority):
    """A product in loops m, k, n, all its own. What has the higher priority comes first."""
    m, k, n = (program.dim(f"{name}{axis}") for axis in "mkn")
    a, b = program.read(m, k), program.read(k, n)
    loops = [(m, rows), (k, depth), (n, columns)]
    product = program.node(7, [a, b], [m, k, n], loops, priority)
    total = program.node(5, [product], [m, n], loops, priority)
    program.write(total, [m, n], [(m, rows), (n, columns)], priority)


def products(*rows):
    """A root for each product; their work is as their rows."""
    program = Program()
    for index, each in enumerate(rows):
        add_product(program, f"p{index}", each, 64, 64, priority=len(rows) - index)
    return program.text()


def powers(rows, *columns):
    """In one loop over rows a body for each number of columns; their work is as their columns. A power takes so
    many instructions that each loop is long enough to be counted."""
    program = Program()
    m = program.dim("m")
    for index, each in enumerate(columns):
        n = program.dim(f"n{index}")
        loops = [(m, rows), (n, each)]
        # The priority keeps a body's operations together, and the bodies in their order.
        priority = len(columns) - index
        x = program.read(m, n)
        value = program.node(44, [x, x], [m, n], loops, priority)
        program.write(value, [m, n], loops, priority)
    return program.text()
