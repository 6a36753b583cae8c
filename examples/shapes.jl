# Areas, perimeters and a little statistics of plane shapes.
#
#     julia shapes.jl

module Shapes

export Shape, Circle, Rect, Triangle, area, perimeter, scale, largest, report

abstract type Shape end

struct Circle <: Shape
    radius::Float64
end

struct Rect <: Shape
    width::Float64
    height::Float64
end

struct Triangle <: Shape
    a::Float64
    b::Float64
    c::Float64

    function Triangle(a, b, c)
        longest = max(a, b, c)
        if 2 * longest >= a + b + c
            throw(ArgumentError("no triangle has sides $a, $b, $c"))
        end
        return new(a, b, c)
    end
end

# A square is a Rect with equal sides.
square(side) = Rect(side, side)

area(shape::Circle) = pi * shape.radius^2
area(shape::Rect) = shape.width * shape.height

function area(shape::Triangle)
    s = perimeter(shape) / 2
    return sqrt(s * (s - shape.a) * (s - shape.b) * (s - shape.c))
end

perimeter(shape::Circle) = 2 * pi * shape.radius
perimeter(shape::Rect) = 2 * (shape.width + shape.height)
perimeter(shape::Triangle) = shape.a + shape.b + shape.c

scale(shape::Circle, factor) = Circle(shape.radius * factor)
scale(shape::Rect, factor) = Rect(shape.width * factor, shape.height * factor)
scale(shape::Triangle, factor) = Triangle(shape.a * factor, shape.b * factor, shape.c * factor)

"How round a shape is: 1 for a circle, less for anything else."
function roundness(shape::Shape)
    return 4 * pi * area(shape) / perimeter(shape)^2
end

"The shape with the greatest area; `nothing` for an empty list."
function largest(shapes)
    best = nothing
    for shape in shapes
        if best === nothing || area(shape) > area(best)
            best = shape
        end
    end
    return best
end

function report(shapes)
    total = 0.0
    for (number, shape) in enumerate(shapes)
        size = round(area(shape), digits = 2)
        println("$number. $(typeof(shape)): area $size, roundness $(round(roundness(shape), digits = 3))")
        total += area(shape)
    end
    println("total area: $(round(total, digits = 2))")
    return total
end

end

using .Shapes

function main()
    shapes = Shape[Circle(1.5), Rect(2.0, 3.5), Triangle(3.0, 4.0, 5.0), Shapes.square(2.0)]
    report(shapes)
    println("largest: ", largest(shapes))
    println("scaled:  ", scale(Rect(1.0, 2.0), 3.0))
end

main()
